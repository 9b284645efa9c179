// The page reads without this script. It writes numbers and times as the browser's language and
// time zone have them, and lets keys do what buttons do.
"use strict";
(() => {
  const language = navigator.languages && navigator.languages.length ? navigator.languages : "en";
  const whole = new Intl.NumberFormat(language);
  const parts = {
    minute: new Intl.DateTimeFormat(language, {
      year: "numeric", month: "2-digit", day: "2-digit", hour: "2-digit", minute: "2-digit",
    }),
    hour: new Intl.DateTimeFormat(language, { hour: "2-digit", minute: "2-digit" }),
    day: new Intl.DateTimeFormat(language, { month: "short", day: "numeric" }),
  };

  const localised = (root) => {
    for (const element of root.querySelectorAll("data[value]:not([data-done])")) {
      const value = Number(element.value);
      const digits = element.dataset.percent;
      element.textContent = digits === undefined
        ? whole.format(value)
        : new Intl.NumberFormat(language, {
            style: "percent", minimumFractionDigits: digits, maximumFractionDigits: digits,
          }).format(value);
      element.dataset.done = "";
    }
    for (const element of root.querySelectorAll("time[datetime]:not([data-done])")) {
      const time = new Date(element.dateTime);
      if (Number.isNaN(time.getTime())) continue;
      element.title = element.dateTime;
      element.textContent = (parts[element.dataset.part] || parts.minute).format(time);
      element.dataset.done = "";
    }
    for (const element of root.querySelectorAll("[data-zone]")) {
      element.textContent = element.dataset.zone.replace(
        "UTC", Intl.DateTimeFormat().resolvedOptions().timeZone,
      );
    }
  };

  // j and k go down and up the rows of a list, Enter opens, / searches.
  const rows = () => [...document.querySelectorAll("a[data-row]")];
  const typing = (element) => element.closest("input, select, textarea, [contenteditable]");
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || typing(event.target)) return;
    if (event.key === "/") {
      const field = document.querySelector("[data-search]");
      if (field) { field.focus(); event.preventDefault(); }
    } else if (event.key === "j" || event.key === "k") {
      const all = rows();
      const now = all.indexOf(document.activeElement);
      const next = event.key === "j" ? now + 1 : (now < 0 ? all.length : now) - 1;
      if (all[next]) all[next].focus();
    }
  });

  document.addEventListener("htmx:afterSwap", (event) => localised(event.detail.target));
  document.addEventListener("htmx:afterSettle", () => localised(document));
  localised(document);
})();
