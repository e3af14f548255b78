// Lays new HTML over what is there instead of putting it in its place, so that focus, scroll, what is being typed and
// what is unfolded stay. htmx calls it for hx-swap="morph". Elements with an id are told by it; others by their order.
// What has data-keep is a part of its own, and changes only when it is itself what was asked for.
(() => {
  "use strict";

  const KEPT = ["open", "hidden"]; // what the reader or the script has done to an element of these names:
  const BY_READER = new Set(["DETAILS", "DIALOG"]);

  function morph(old, made, whole = false) {
    if (old.nodeType !== made.nodeType || old.nodeName !== made.nodeName) {
      old.replaceWith(made);
      return;
    }
    if (old.nodeType === Node.TEXT_NODE || old.nodeType === Node.COMMENT_NODE) {
      if (old.data !== made.data) old.data = made.data;
      return;
    }
    if ((old.hasAttribute("data-keep") && !whole) || old.isEqualNode(made)) return;
    attributes(old, made);
    if (old.nodeName === "INPUT" || old.nodeName === "TEXTAREA" || old.nodeName === "SELECT") return;
    children(old, made);
  }

  function attributes(old, made) {
    const kept = (name) => BY_READER.has(old.nodeName) && KEPT.includes(name);
    for (const { name, value } of [...made.attributes]) {
      if (!kept(name) && old.getAttribute(name) !== value) old.setAttribute(name, value);
    }
    for (const { name } of [...old.attributes]) {
      if (!kept(name) && !made.hasAttribute(name)) old.removeAttribute(name);
    }
  }

  // The property "id" of a form is its field of that name, where it has one.
  const idOf = (node) => node.nodeType === Node.ELEMENT_NODE && node.getAttribute("id");

  function children(old, made) {
    const named = new Map();
    for (const child of old.children) if (idOf(child)) named.set(idOf(child), child);
    const wanted = new Set([...made.children].map(idOf).filter(Boolean));
    let at = old.firstChild;
    for (const next of [...made.childNodes]) {
      const same = idOf(next) ? named.get(idOf(next)) : null;
      // An old element whose id is not in the new HTML is removed. If the partner of this element stands further on, the
      // nodes without an id before it are removed, too: the partner would lose the focus if it were moved instead.
      while (at && at !== same && (idOf(at) ? !wanted.has(idOf(at)) : same)) {
        const gone = at;
        at = at.nextSibling;
        gone.remove();
      }
      if (same) {
        if (same === at) at = at.nextSibling;
        else old.insertBefore(same, at);
        morph(same, next);
      } else if (at && !idOf(at) && !idOf(next) && at.nodeName === next.nodeName) {
        const partner = at;
        at = at.nextSibling;
        morph(partner, next);
      } else {
        old.insertBefore(next, at);
      }
    }
    while (at) {
      const gone = at;
      at = at.nextSibling;
      gone.remove();
    }
  }

  htmx.defineExtension("morph", {
    isInlineSwap: (style) => style === "morph",
    handleSwap: (style, target, fragment) => {
      if (style !== "morph") return false;
      const made = fragment.firstElementChild;
      if (!made) return false;
      morph(target, made, true);
      return [target];
    },
  });
})();
