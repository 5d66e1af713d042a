"""What several chapters of the book share."""
