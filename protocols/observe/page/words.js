// Numbers as words, and elements of the page. All texts of the program are put in as text.

const $ = (id) => document.getElementById(id);

function element(name, className, ...children) {
  const made = document.createElement(name);
  if (className) made.className = className;
  made.append(...children);
  return made;
}

// Set a text only if it differs, because each change costs a layout.
function say(node, text) {
  if (node.firstChild === null || node.firstChild.data !== text) node.textContent = text;
}

// A number with three figures, such as "12.3 k".
function amount(number) {
  if (!(number > 0)) return number < 0 ? "-" + amount(-number) : "0";
  for (const [size, unit] of [[1e9, " G"], [1e6, " M"], [1e3, " k"]]) {
    if (number >= size) return figures(number / size) + unit;
  }
  return figures(number);
}

function figures(number) {
  if (number >= 99.95 || Number.isInteger(number)) return number.toFixed(0);
  if (number >= 9.995) return number.toFixed(1);
  return number >= 0.05 ? number.toFixed(2) : "< 0.05";
}

function bytes(number) {
  return amount(number) + (number >= 1e3 ? "B" : " B");
}

function percent(share) {
  const number = 100 * share;
  return (number > 0 && number < 9.95 ? number.toFixed(1) : Math.round(number)) + " %";
}

// A length of time in ns.
function time(ns) {
  if (!(ns > 0)) return "0";
  for (const [size, unit] of [[1e9, " s"], [1e6, " ms"], [1e3, " us"]]) {
    if (ns >= size) return figures(ns / size) + unit;
  }
  return figures(ns) + " ns";
}

function times(count) {
  return ["never", "once", "twice"][count] || amount(count) + " times";
}

function seconds(number) {
  return Math.abs(number) < 100 ? number.toFixed(2).replace(/\.?0+$/, "") + " s" : Math.round(number) + " s";
}
