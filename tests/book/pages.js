// What the tests of the pages measure, in a page of the book.

const article = () => document.querySelector("article") ?? document.body;
const shown = (element) => element.checkVisibility({ visibilityProperty: true });
const all = (selector) => [...article().querySelectorAll(selector)].filter(shown);

/** The start of what an element says, to be found again by. */
function told(element) {
  const image = element.matches("img") ? element.alt : "";
  const text = (image || element.textContent).trim().replace(/\s+/g, " ");
  return `${element.tagName.toLowerCase()} "${text.slice(0, 70)}"`;
}

/** How many windows of 820 px a page and its visible code fill. */
function screens() {
  const height = (elements) =>
    elements.reduce((sum, e) => sum + e.getBoundingClientRect().height, 0) / 820;
  const code = all("div.highlight").filter((e) => !e.closest(".cell_output"));
  return [height([article()]), height(code)];
}

/** Code, tables and equations of which a part is beyond an edge, and by how much. */
function clipped() {
  return all("pre, table, mjx-container[display=true]").flatMap((element) => {
    const left = element.getBoundingClientRect().left;
    const right = left + Math.max(element.scrollWidth, element.offsetWidth);
    const edges = [article().getBoundingClientRect().right];
    for (let box = element; box !== article(); box = box.parentElement)
      if (getComputedStyle(box).overflowX !== "visible")
        edges.push(box.getBoundingClientRect().left + box.clientLeft + box.clientWidth);
    const beyond = Math.ceil(right - Math.min(...edges));
    return beyond > 1 ? [`${beyond} px of ${told(element)}`] : [];
  });
}

/** How much wider than the window a page is, and what sticks out. */
function sideways() {
  const root = document.scrollingElement;
  const wide = root.scrollWidth - root.clientWidth;
  if (wide <= 0) return [];
  const out = all("*").filter((element) => {
    if (element.getBoundingClientRect().right <= root.clientWidth + 1) return false;
    for (let box = element.parentElement; box; box = box.parentElement)
      if (getComputedStyle(box).overflowX !== "visible" && box !== document.body)
        return false;
    return ![...element.children].some(
      (child) => child.getBoundingClientRect().right > root.clientWidth + 1,
    );
  });
  return [`${wide} px`, ...out.slice(0, 5).map(told)];
}

/** The text of a page without code and without mathematics that is set. */
function prose() {
  const copy = article().cloneNode(true);
  const machine = "pre, code, mjx-container, script, style, annotation, .sig";
  copy.querySelectorAll(machine).forEach((element) => element.remove());
  return copy.textContent;
}

/** Mathematics, directives and references that came to nothing. */
function failed() {
  const wrong = "mjx-merror, [data-mjx-error], .problematic, .system-message, .output.traceback";
  return [...article().querySelectorAll(wrong)].map(told);
}

/** Pictures that are not there, or say nothing to who does not see them. */
function pictures() {
  return [...article().querySelectorAll("img")]
    .filter((img) => !img.complete || img.naturalWidth === 0 || !img.alt.trim())
    .map((img) => img.getAttribute("src").slice(0, 100));
}

/** The addresses to which a page links. */
const links = () => [...document.querySelectorAll("a[href]")].map((a) => a.href);

// Contrast, as the Web Content Accessibility Guidelines define it.

const canvas = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });

/** A function that remembers its answers. */
function remembering(answers, compute) {
  return (key) => {
    if (!answers.has(key)) answers.set(key, compute(key));
    return answers.get(key);
  };
}

/** A colour as [red, green, blue, opacity]. */
const rgba = remembering(new Map(), (colour) => {
  canvas.clearRect(0, 0, 1, 1);
  canvas.fillStyle = colour;
  canvas.fillRect(0, 0, 1, 1);
  const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data;
  return [r, g, b, a / 255];
});

const over = ([r, g, b, a], below) =>
  [r, g, b].map((part, k) => a * part + (1 - a) * below[k]).concat(1);

/** The colour on which an element stands. */
const ground = remembering(new WeakMap(), (element) => {
  const colour = rgba(getComputedStyle(element).backgroundColor);
  const outer = element.parentElement;
  return over(colour, outer ? ground(outer) : [255, 255, 255, 1]);
});

function luminance(colour) {
  const [r, g, b] = colour.slice(0, 3).map((part) => {
    const c = part / 255;
    return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

function contrast(one, other) {
  const [dark, light] = [luminance(one), luminance(other)].sort((a, b) => a - b);
  return (light + 0.05) / (dark + 0.05);
}

/** Text with less contrast than 4.5, or 3 where it is large. */
function faint() {
  const walker = document.createTreeWalker(article(), NodeFilter.SHOW_TEXT);
  const seen = new Map();
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    if (!walker.currentNode.data.trim() || element.closest("script, style, .headerlink"))
      continue;
    if (!shown(element)) continue;
    const style = getComputedStyle(element);
    const below = ground(element);
    const key = [style.color, style.fontSize, style.fontWeight, below].join();
    if (seen.has(key)) continue;
    const size = parseFloat(style.fontSize);
    const large = size >= 24 || (size >= 18.6 && style.fontWeight >= 700);
    const found = contrast(over(rgba(style.color), below), below);
    seen.set(key, found < (large ? 3 : 4.5) && `${found.toFixed(1)} ${told(element)}`);
  }
  return [...seen.values()].filter(Boolean);
}

/** Change the scheme of colours, as the button of the theme does. */
function scheme(name) {
  document.documentElement.dataset.mode = name;
  document.documentElement.dataset.theme = name;
}

/** The figures, and the colour on which they should stand. */
const figures = () => [all("figure img, .frames img"), ground(article()).slice(0, 3)];

/** Bring an element to where all of it is seen. */
const bring = (element) =>
  element.scrollIntoView({ block: "center", behavior: "instant" });
