// The form of a submission: files are dropped into it, and it is sent beside the page, so that what is written stays.
(() => {
  "use strict";

  const form = document.querySelector("[data-submit]");
  if (!form) return;
  const all = (selector) => [...form.querySelectorAll(selector)];
  const input = form.querySelector("input[type=file]");
  const drop = form.querySelector("[data-drop]");
  const UNITS = ["bytes", "kB", "MB", "GB", "TB"];

  function size(bytes) {
    let unit = 0;
    while (bytes >= 999.95 && unit < UNITS.length - 1) { bytes /= 1000; unit += 1; }
    return unit ? `${bytes.toFixed(1)} ${UNITS[unit]}` : `${bytes} bytes`;
  }

  function dressed() {
    for (const element of all(".js")) element.hidden = false;
    for (const element of all(".nojs")) element.hidden = true;
    const lines = [...input.files].map((file) => {
      const line = document.createElement("li");
      const name = document.createElement("span");
      name.className = "break";
      name.textContent = file.name;
      const long = document.createElement("span");
      long.className = "figure sub";
      long.textContent = size(file.size);
      line.append(name, long);
      return line;
    });
    form.querySelector("[data-chosen]").replaceChildren(...lines);
  }

  // --- files ---------------------------------------------------------------------------------

  let depth = 0;
  const over = (state) => drop.classList.toggle("over", state);
  const hasFiles = (event) => [...(event.dataTransfer?.types || [])].includes("Files");
  drop.addEventListener("dragenter", (event) => { if (hasFiles(event)) { depth += 1; over(true); } });
  drop.addEventListener("dragleave", () => { depth = Math.max(0, depth - 1); over(depth > 0); });
  drop.addEventListener("drop", (event) => {
    depth = 0;
    over(false);
    if (!hasFiles(event)) return;
    event.preventDefault();
    const together = new DataTransfer();
    for (const file of [...input.files, ...event.dataTransfer.files]) together.items.add(file);
    input.files = together.files;
    dressed();
  });
  // A file dropped beside its place must not open it in place of the page.
  for (const kind of ["dragover", "drop"]) {
    document.addEventListener(kind, (event) => { if (hasFiles(event)) event.preventDefault(); });
  }
  input.addEventListener("change", dressed);

  // --- sending -------------------------------------------------------------------------------

  const sending = () => form.querySelector("[data-sending]");
  document.body.addEventListener("htmx:xhr:progress", (event) => {
    if (!event.detail.lengthComputable || !input.files.length) return;
    sending().hidden = false;
    sending().value = event.detail.loaded / event.detail.total;
  });
  document.body.addEventListener("htmx:beforeSwap", (event) => {
    const { xhr, target } = event.detail;
    if (target !== form || !(xhr.getResponseHeader("content-type") || "").startsWith("text/html")) return;
    event.detail.shouldSwap = xhr.status < 500;
    event.detail.isError = xhr.status >= 500;
  });
  document.body.addEventListener("htmx:afterRequest", (event) => {
    if (event.detail.elt !== form || event.detail.xhr.getResponseHeader("HX-Redirect")) return;
    sending().hidden = true;
    dressed();
    form.querySelector("#submit-errors")?.focus();
    form.querySelector("[aria-invalid]")?.focus();
  });
  dressed();
})();
