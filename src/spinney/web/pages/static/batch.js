// In the grid of a batch the arrow keys move from cell to cell: Tab passes by two thousand of them in one step.
(() => {
  "use strict";

  const KEYS = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: "up", ArrowDown: "down", Home: "first", End: "last" };

  document.addEventListener("keydown", (event) => {
    const from = event.target.closest?.("[data-cells] a");
    const way = KEYS[event.key];
    if (!from || way === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
    const cells = [...from.closest("[data-cells]").querySelectorAll("a")];
    const at = cells.indexOf(from);
    const across = columns(cells);
    const to = { up: at - across, down: at + across, first: 0, last: cells.length - 1 }[way] ?? at + way;
    event.preventDefault();
    cells[to]?.focus();
  });

  function columns(cells) {
    const top = cells[0].offsetTop;
    const next = cells.findIndex((cell) => cell.offsetTop !== top);
    return next < 0 ? cells.length : next;
  }
})();
