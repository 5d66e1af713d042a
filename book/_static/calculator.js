// What a budget buys: fields above the table of the first page, which stands alone
// without JavaScript. Its rows are shares of the pairs, its columns what these give.
document.addEventListener("DOMContentLoaded", () => {
  for (const table of document.querySelectorAll("table")) {
    const heads = [...table.querySelectorAll("thead tr:first-child th")]
      .map((th) => th.textContent.trim());
    if (heads[0] !== "pairs evaluated") continue;
    const number = (text) => parseFloat(text.replace("−", "-").replace(",", ""));
    const rows = [...table.querySelectorAll("tbody tr")]
      .map((row) => [...row.cells].map((cell) => number(cell.textContent)));
    const form = document.createElement("form");
    form.className = "calculator";
    const fields = [
      ["items", 10000, 2], ["seconds a pair", 0.02, 1e-9], ["hours to spend", 10, 0],
    ];
    for (const [name, value, least] of fields) {
      const label = document.createElement("label");
      label.textContent = `${name} `;
      const field = document.createElement("input");
      Object.assign(field, { type: "number", value, min: least, step: "any" });
      label.append(field);
      form.append(label);
    }
    const told = document.createElement("output");
    told.setAttribute("aria-live", "polite");
    form.append(told);
    const round = (x, digits = 2) => Number(x.toPrecision(digits)).toLocaleString("en");
    const between = (share, column) => {  // linear in the logarithm of the share
      const told = rows.filter((row) => Number.isFinite(row[column]));
      const k = told.findIndex((row) => row[0] >= share);
      if (k < 0 || share < told[0][0]) return null;
      const [low, high] = [told[Math.max(k - 1, 0)], told[k]];
      if (low === high) return high[column];
      const t = Math.log(share / low[0]) / Math.log(high[0] / low[0]);
      return low[column] + t * (high[column] - low[column]);
    };
    const show = () => {
      const [n, seconds, hours] = [...form.querySelectorAll("input")]
        .map((field) => field.valueAsNumber);
      if (!(n >= 2 && seconds > 0 && hours >= 0)) {
        told.textContent = "Give two items or more, and seconds and hours above zero.";
        return;
      }
      const pairs = (n * (n - 1)) / 2, calls = (3600 * hours) / seconds;
      const share = (100 * calls) / pairs;
      let text = `All ${round(pairs)} pairs take ${round((pairs * seconds) / 3600)} hours. `;
      if (share >= 100) text += "You can pay for all of them: no approximation is needed.";
      else {
        const columns = Math.floor(calls / n);
        text += `You can pay for ${round(calls)}, ${round(share)} % of them: `;
        text += columns ? `${columns.toLocaleString("en")} landmarks, ` : "";
        text += `${round((2 * calls) / n)} pairs of each item. `;
        const found = heads.slice(1).map((head, k) => [head, between(share, k + 1)])
          .filter(([, value]) => value !== null);
        text += found.length
          ? `On the sentences below: ${found.map(([head, value]) => `${head} ${value.toFixed(2)}`).join(", ")}.`
          : share < rows[0][0] ? "That is less than was tried." : "That is more than was tried.";
      }
      told.textContent = text;
    };
    for (const event of ["input", "change"]) form.addEventListener(event, show);
    form.addEventListener("submit", (event) => event.preventDefault());
    (table.closest(".pst-scrollable-table-container") ?? table).before(form);
    show();
  }
});
