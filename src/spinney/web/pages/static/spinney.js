// What makes pages live and quick: one event stream a page, ages that count on, keys, light and dark, dialogs.
// Everything here is a comfort: without it each page is whole, and stands still.
(() => {
  "use strict";

  const body = document.body;
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  const stored = {
    get: (name) => { try { return localStorage.getItem(name); } catch { return null; } },
    set: (name, value) => { try { localStorage.setItem(name, value); } catch { /* a private window */ } },
  };
  // A part that is fetched anew comes with what scripts alone can use hidden, as the page did.
  const reveal = () => { for (const element of all(".js[hidden]")) element.hidden = false; };
  reveal();

  // --- ages --------------------------------------------------------------------------------

  const UNITS = [[31536000, "year"], [86400, "day"], [3600, "h"], [60, "min"], [1, "s"]];

  function ago(seconds) {
    if (Math.abs(seconds) < 5) return seconds >= 0 ? "just now" : "in a moment";
    if (seconds < 0) return `in ${parts(rounded(-seconds))}`;
    const whole = Math.trunc(seconds);
    const [size, unit] = UNITS.find(([size]) => whole >= size);
    const count = Math.trunc(whole / size);
    return `${counted(count, unit)} ago`;
  }

  const counted = (count, unit) => `${count} ${unit}${(unit === "day" || unit === "year") && count !== 1 ? "s" : ""}`;

  // A token made for 90 days would else read "89 days 23 h" at once.
  function rounded(seconds) {
    const largest = UNITS.findIndex(([size]) => Math.round(seconds) >= size);
    const [size] = UNITS[largest + 1] || [1];
    return Math.round(seconds / size) * size;
  }

  function lasting(seconds) {
    return seconds < 10 ? `${Math.max(0, seconds).toFixed(1)} s` : parts(seconds);
  }

  function parts(seconds) {
    let left = Math.round(seconds);
    const counts = [];
    for (const [size, unit] of UNITS) {
      const count = Math.trunc(left / size);
      if (count && counts.length < 2) {
        counts.push(counted(count, unit));
        left %= size;
      } else if (counts.length) break;
    }
    return counts.join(" ");
  }

  function countOn() {
    const now = Date.now();
    for (const time of all("time[data-ago]")) write(time, ago((now - Date.parse(time.dateTime)) / 1000));
    for (const span of all("[data-since]")) write(span, lasting(now / 1000 - span.dataset.since / 1e6));
  }

  function write(element, text) {
    if (element.textContent !== text) element.textContent = text;
  }

  setInterval(() => { if (!document.hidden) countOn(); }, 1000);

  // --- live ----------------------------------------------------------------------------------

  const topics = (body.dataset.topics || "").split(" ").filter(Boolean);
  const sign = document.getElementById("live");
  const WORDS = { live: "live", again: "reconnecting", stopped: "not live" };
  const seen = new Map();
  let source = null;
  let tries = 0;
  let timer = 0;
  let lost = false;
  let ended = false;

  function show(state) {
    if (!sign || sign.dataset.state === state) return;
    sign.hidden = false;
    sign.dataset.state = state;
    sign.querySelector("[data-live-words]").textContent = WORDS[state];
  }

  // "job:17" is told as spinney:job, for a page watches one job, one tree, one list.
  const trigger = (topic) => htmx.trigger(body, `spinney:${topic.split(":")[0]}`);

  // The server compares a topic's states once a second. A part that is fetched between two changes which cancel each
  // other out shows what no event takes back; so it is fetched once more after its topic has been quiet for a while.
  const QUIET_MS = 2500;
  const quiet = new Map();

  function tell(topic) {
    trigger(topic);
    clearTimeout(quiet.get(topic));
    quiet.set(topic, setTimeout(() => { if (!document.hidden) trigger(topic); }, QUIET_MS));
  }

  function open() {
    clearTimeout(timer);
    close();
    if (ended) return;
    const query = topics.map((topic) => `topic=${encodeURIComponent(topic)}`).join("&");
    source = new EventSource(`/events?${query}`);
    source.onopen = () => {
      tries = 0;
      show("live");
      if (lost) topics.forEach(tell);
      lost = false;
    };
    source.onerror = () => {
      lost = true;
      tries += 1;
      show(tries > 5 ? "stopped" : "again");
      if (source && source.readyState === EventSource.CLOSED) {
        // Refused, and a browser does not say why. The parts ask in its stead: they learn where to sign in, and where
        // there is no room for one more stream the page still moves, only slower.
        timer = setTimeout(() => {
          topics.forEach(tell);
          open();
        }, Math.min(30000, 500 * 2 ** tries) * (0.5 + Math.random()));
      }
    };
    source.addEventListener("end", (event) => {
      // Whoever looks may look no more. The parts ask once more: they learn where to sign in, or why they are refused.
      end(JSON.parse(event.data).detail);
      topics.forEach(trigger);
    });
    for (const topic of topics) {
      source.addEventListener(topic, (event) => {
        if (seen.get(topic) === event.data) return;
        seen.set(topic, event.data);
        tell(topic);
      });
    }
  }

  function end(sentence) {
    ended = true;
    clearTimeout(timer);
    quiet.forEach(clearTimeout);
    close();
    show("stopped");
    showFlash(sentence, "refused");
  }

  function close() {
    if (source) source.close();
    source = null;
  }

  if (topics.length && window.EventSource && window.htmx) {
    // A browser has few connections to one server: a page that nobody sees leaves them to others.
    document.addEventListener("visibilitychange", () => {
      if (document.hidden) {
        clearTimeout(timer);
        close();
        lost = true;
      } else open();
    });
    addEventListener("pagehide", close);
    addEventListener("pageshow", (event) => { if (event.persisted) open(); });
    if (!document.hidden) open();
  }

  body.addEventListener("htmx:afterSwap", countOn);
  body.addEventListener("htmx:afterSwap", reveal);
  body.addEventListener("htmx:responseError", (event) => {
    const { status, responseText } = event.detail.xhr;
    if ((status === 503 || status === 429) && !isForm(event)) return show("again");
    let sentence = `the server responded with ${status}; reload the page`;
    try { sentence = JSON.parse(responseText).detail || sentence; } catch { /* no problem document */ }
    const trigger = event.detail.requestConfig.triggeringEvent;
    const live = trigger && trigger.type.startsWith("spinney:");
    if (!live || status !== 403) return refuse(event, sentence);
    if (!ended) end(sentence);  // asking again would be refused again
  });
  body.addEventListener("htmx:sendError", (event) => {
    if (isForm(event)) refuse(event, "the server did not answer; send it again");
    else show("again");
  });

  // Live parts are fetched again by themselves, and what a person has sent is not.
  const isForm = (event) => event.detail.requestConfig.verb !== "get";

  function refuse(event, sentence) {
    showFlash(sentence, "refused");
    if (isForm(event)) document.getElementById("flash")?.scrollIntoView({ block: "nearest" });
  }

  function showFlash(sentence, kind) {
    const place = document.getElementById("flash");
    if (!place) return;
    const line = document.createElement("p");
    line.className = kind;
    line.textContent = sentence;
    place.replaceChildren(line);
  }

  // --- light and dark ------------------------------------------------------------------------

  const THEMES = ["auto", "light", "dark"];
  const root = document.documentElement;

  function themed() {
    for (const words of all("[data-theme-words]")) {
      words.textContent = { auto: "System", light: "Light", dark: "Dark" }[root.dataset.theme];
    }
  }

  function nextTheme() {
    const next = THEMES[(THEMES.indexOf(root.dataset.theme) + 1) % THEMES.length];
    root.dataset.theme = next;
    const secure = "secure" in root.dataset || location.protocol === "https:" ? "; Secure" : "";
    document.cookie = `spinney_theme=${next}; Path=/; Max-Age=31536000; SameSite=Lax${secure}`;
    themed();
  }

  for (const button of all("[data-theme-switch]")) button.addEventListener("click", nextTheme);
  themed();

  // --- what unfolds --------------------------------------------------------------------------

  const places = document.querySelector(".places");
  if (places) {
    const small = matchMedia("(max-width: 820px)");
    const fit = () => { places.open = !small.matches; };
    small.addEventListener("change", fit);
    fit();
    places.dataset.ready = "";
  }

  document.addEventListener("click", (event) => {
    const opener = event.target.closest("[data-opens]");
    if (opener) document.getElementById(opener.dataset.opens).showModal();
    const closer = event.target.closest("[data-closes]");
    if (closer) document.getElementById(closer.dataset.closes).close();
    for (const details of all("details.ask[open]")) if (!details.contains(event.target)) details.open = false;
  });
  document.addEventListener("toggle", (event) => {
    if (event.target.matches?.("details.ask[open]")) event.target.querySelector("form :is(input:not([type=hidden]), select, textarea, button)")?.focus();
  }, true);
  // Forms are sent once, however often the button is pressed.
  document.addEventListener("submit", (event) => {
    if (event.target.getAttribute("method") !== "post") return;
    if (event.target.dataset.sent) return event.preventDefault();
    event.target.dataset.sent = "1";
    for (const button of all("button", event.target)) button.setAttribute("aria-disabled", "true");
  });
  // Those that the page is left with, back in the history or after a refusal, may be sent again.
  function release(form) {
    delete form.dataset.sent;
    for (const button of all("button", form)) button.removeAttribute("aria-disabled");
  }
  addEventListener("pageshow", () => all("form[data-sent]").forEach(release));
  body.addEventListener("htmx:afterRequest", ({ detail: { elt, xhr } }) => {
    if (elt.matches("form[data-sent]") && !xhr.getResponseHeader("HX-Redirect")) release(elt);
  });
  // A form that was refused is filled in again, and so is one whose user was signed out meanwhile, for that user alone.
  // Secrets and files are not kept.
  const ENTERED = "spinney:entered";
  const FIELD = ":is(input:not([type=hidden], [type=password], [type=file]), select, textarea)[name]";
  const isBox = (field) => field.type === "checkbox" || field.type === "radio";
  let entered = null; // the form in which something was entered last, or that was sent since

  // Forms of a page differ in their addresses, verbs and fields.
  const nameOf = (form) => [form.getAttribute("action"), form.querySelector("[type=hidden][name=verb]")?.value,
    ...all(FIELD, form).map((field) => field.name)].join(" ");

  const user = () => document.querySelector(".account .who")?.textContent;

  function keepEntered() {
    if (!entered?.isConnected) return;
    const values = all(FIELD, entered).map((field) => (isBox(field) ? field.checked : field.value));
    try {
      sessionStorage.setItem(ENTERED, JSON.stringify({ user: user(), page: location.pathname, form: nameOf(entered), values }));
    } catch { /* a private window, or too much */ }
  }

  function fillIn() {
    let kept = null;
    try {
      kept = JSON.parse(sessionStorage.getItem(ENTERED));
      sessionStorage.removeItem(ENTERED);
    } catch { /* a private window */ }
    // A page that is loaded again has the referrer of the first time.
    const [{ type }] = performance.getEntriesByType("navigation");
    const refused = document.querySelector("#flash .refused");
    const comesBack = type === "navigate" && (refused || document.referrer.startsWith(`${location.origin}/sign-in`));
    if (!comesBack || kept?.user !== user() || kept.page !== location.pathname) return;
    const form = all("form[method=post]").find((form) => nameOf(form) === kept.form);
    if (!form) return;
    for (const [index, field] of all(FIELD, form).entries()) {
      if (isBox(field)) field.checked = kept.values[index];
      else field.value = kept.values[index];
    }
    for (let fold = form.closest("details"); fold; fold = fold.parentElement.closest("details")) fold.open = true;
    entered = form;
    if (!refused) showFlash("What you had entered is in the form again; it was not sent", "done");
  }

  if (document.querySelector("header.side")) { // not where people sign in
    fillIn();
    document.addEventListener("input", ({ target: { form } }) => {
      if (form?.getAttribute("method") === "post") entered = form;
    });
    // Of whoever signs out, nothing is kept: the form with that button has no fields.
    document.addEventListener("submit", ({ target }) => {
      if (target.getAttribute("method") === "post") entered = target;
    });
    addEventListener("pagehide", keepEntered);
  }
  // Fields of a filter that are empty have no place in the address.
  document.addEventListener("formdata", (event) => {
    if (event.target.getAttribute("method") !== "get") return;
    for (const [name, value] of [...event.formData.entries()]) if (value === "") event.formData.delete(name);
  });

  // --- output ------------------------------------------------------------------------------

  const GROWS_MS = 1000;
  const lines = new WeakMap(); // what a stream shows when nothing is looked for
  let asking = false;

  function written(pre) {
    if (!lines.has(pre)) lines.set(pre, pre.textContent);
    return lines.get(pre);
  }

  function lay(pre) {
    const whole = written(pre);
    const wanted = document.querySelector("[data-find]")?.value.trim().toLowerCase();
    const label = pre.parentElement.querySelector("[data-shown]");
    if (!wanted) {
      write(pre, whole);
      if (label) write(label, "");
      return;
    }
    const fit = whole.split("\n").filter((line) => line.toLowerCase().includes(wanted));
    write(pre, fit.join("\n"));
    if (label) write(label, `${fit.length} ${fit.length === 1 ? "line" : "lines"} shown; Enter searches all of it`);
  }

  const rest = (pre) => `${pre.dataset.output}?from=${pre.dataset.from}`;

  async function grow() {
    if (asking || document.hidden) return;
    asking = true;
    try {
      for (const pre of all("pre[data-running]")) {
        const address = rest(pre);
        const answer = await fetch(address, { headers: { "HX-Request": "true" } });
        if (!answer.ok) continue;
        const { text, unfinished, next, more } = await answer.json();
        // Meanwhile the output may have been fetched whole, with the same lines, or that of another attempt.
        if (!pre.isConnected || rest(pre) !== address) continue;
        if (!more) delete pre.dataset.running;
        const follows = pre.scrollHeight - pre.scrollTop - pre.clientHeight < 30;
        // The line that was unfinished comes again: a progress bar overwrites it.
        const whole = written(pre);
        lines.set(pre, whole.slice(0, whole.length - pre.dataset.unfinished.length) + text + unfinished);
        Object.assign(pre.dataset, { from: next, unfinished });
        lay(pre);
        if (follows) pre.scrollTop = pre.scrollHeight;
      }
    } catch { /* the server is away: the stream of events says so */ }
    asking = false;
  }

  setInterval(grow, GROWS_MS);
  document.addEventListener("input", (event) => {
    if (event.target.matches("[data-find]")) for (const pre of all("pre[data-output]")) lay(pre);
  });
  body.addEventListener("htmx:afterSwap", (event) => {
    // A swap of another part leaves the output as it is, which may be only the lines that were searched for.
    if (!event.target.closest("#output")) return;
    for (const pre of all("#output pre[data-output]")) {
      lines.set(pre, pre.textContent);
      lay(pre);
      if (!pre.dataset.begun) {
        pre.dataset.begun = "1";
        pre.scrollTop = pre.scrollHeight;
      }
    }
  });

  // --- choosing rows -------------------------------------------------------------------------

  function picked() {
    for (const words of all("[data-picked]")) {
      const form = words.closest("form");
      const count = all(`input[name=id][form=${form.getAttribute("id")}]:checked`).length;
      const every = form.querySelector("[data-pick-every]").checked;
      write(words, every ? "With all of them:" : count ? `With the ${count} selected:` : "");
    }
  }

  document.addEventListener("change", (event) => {
    if (event.target.matches("[data-pick-all]")) {
      const form = event.target.closest("form").getAttribute("id");
      for (const box of all(`input[name=id][form=${form}]`)) box.checked = event.target.checked;
    }
    if (event.target.matches("[data-pick-all], [data-pick-every], input[name=id]")) picked();
  });
  body.addEventListener("htmx:afterSwap", picked);
  addEventListener("pageshow", picked);

  // --- keys ----------------------------------------------------------------------------------

  let chord = 0;
  const dialog = document.getElementById("keys");
  const keysSwitch = document.querySelector("[data-keys-switch]");
  if (keysSwitch) {
    keysSwitch.checked = stored.get("spinney:keys") !== "off";
    keysSwitch.addEventListener("change", () => stored.set("spinney:keys", keysSwitch.checked ? "on" : "off"));
  }

  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") {
      for (const details of all("details.ask[open]")) {
        details.open = false;
        details.querySelector("summary").focus();
      }
      if (event.target.id === "search") event.target.blur();  // so that keys are shortcuts again
      return;
    }
    const typing = event.target.closest?.("input, textarea, select, [contenteditable]");
    if (event.ctrlKey || event.metaKey || event.altKey || typing || !keysSwitch || dialog.open) return;
    if (event.key === "?") return dialog.showModal();  // always: it has the switch
    if (!keysSwitch.checked) return;
    if (Date.now() - chord < 1500) {
      chord = 0;
      const place = document.querySelector(`[data-key="${CSS.escape(event.key)}"]`);
      if (place) { event.preventDefault(); location.assign(place.href); }
      return;
    }
    const done = {
      g: () => { chord = Date.now(); },
      "/": () => { if (places && !places.open) places.open = true; document.getElementById("search").focus(); },
      j: () => move(1), k: () => move(-1),
      Enter: () => (event.target === body || event.target.closest?.(".scroll, main")) && !event.target.closest?.("a, button, summary") && enter(),
      r: () => location.reload(),
      t: nextTheme,
    }[event.key];
    if (done) {
      if (event.key !== "Enter") event.preventDefault();
      done();
    }
  });

  let at = null;

  function move(step) {
    const rows = all("[data-row]");
    if (!rows.length) return;
    const place = rows.findIndex((row) => row.id === at || row.classList.contains("at"));
    const row = rows[Math.min(rows.length - 1, Math.max(0, place < 0 ? 0 : place + step))];
    for (const other of all("[data-row].at")) other.classList.remove("at");
    row.classList.add("at");
    at = row.id;
    row.querySelector("a[href]")?.focus({ preventScroll: true });
    row.scrollIntoView({ block: "nearest" });
  }

  body.addEventListener("htmx:afterSwap", () => {
    if (at) document.getElementById(at)?.classList.add("at");
  });

  function enter() {
    document.querySelector("[data-row].at a[href]")?.click();
  }
})();
