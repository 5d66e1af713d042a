// Pages are printed light, whatever they are on the screen.
const root = document.documentElement;
let theme = root.dataset.theme;
addEventListener("beforeprint", () => { theme = root.dataset.theme; root.dataset.theme = "light"; });
addEventListener("afterprint", () => { root.dataset.theme = theme; });
