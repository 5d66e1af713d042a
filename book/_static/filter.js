// A search field and a choice of verdicts above the tables of what papers claim.
// Without it they are plain tables.
const PLACE = "(?:algorithm|appendix|definition|fact|figure|lemma|section|table|theorem)";
const WORDS = new RegExp(`${PLACE} [\\w.]+|\\S+`, "g"); // "figure 3" is one word
document.addEventListener("DOMContentLoaded", () => {
  for (const table of document.querySelectorAll("table")) {
    const heads = [...table.querySelectorAll("thead th")].map((th) => th.textContent);
    const column = heads.indexOf("Verdict");
    if (column < 0 || heads[0] !== "Where") continue;
    table.classList.add("verdicts");
    const rows = [...table.querySelectorAll("tbody tr")];
    for (const row of rows)
      for (const [k, cell] of [...row.cells].entries())
        if (cell.textContent.trim()) cell.setAttribute("data-head", heads[k]);
    const verdict = (row) => row.cells[column].textContent.trim()
      .replace(/^holds in \d.*/, "holds in part").split(/;| \(/)[0];
    const kinds = [...new Set(rows.map(verdict))].sort();
    const form = document.createElement("form");
    form.className = "verdicts-filter";
    form.innerHTML = `<label>Find <input type="search"></label>
      <label>Verdict <select><option value="">all</option></select></label>
      <output aria-live="polite"></output>`;
    const [find, choice, told] = form.querySelectorAll("input, select, output");
    for (const kind of kinds) choice.add(new Option(kind));
    const show = () => {
      const words = find.value.toLowerCase().match(WORDS) ?? [];
      let shown = 0;
      for (const row of rows) {
        const text = row.textContent.toLowerCase();
        const fits = words.every((word) => text.includes(word))
          && (!choice.value || verdict(row) === choice.value);
        row.hidden = !fits;
        shown += fits;
      }
      told.textContent = `${shown} of ${rows.length}`;
    };
    for (const event of ["input", "change"]) form.addEventListener(event, show);
    form.addEventListener("submit", (event) => event.preventDefault());
    const box = table.closest(".pst-scrollable-table-container") ?? table;
    box.before(form);
    show();
  }
});
