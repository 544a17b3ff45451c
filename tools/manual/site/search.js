/* The search of the index: it looks for each word in the names first, then in what they are. The list
 * of names is in names.js: [name, kind, page, line]. */
"use strict";

const shown = 60; /* results at most; more words are better than more results */
const field = document.querySelector("input[type=search]");
const list = document.getElementById("found");
let chosen = -1;

/* How well a name fits a word: the less, the better; -1: not at all. */
function rank(name, line, text)
{
    const word = text.toLowerCase();
    const low = name.toLowerCase();
    const bare = low.replace(/^domus[_/-]/, "");

    if (name === text)
        return 0;
    if (low === word || bare === word)
        return 0.5;
    if (low.startsWith(word) || bare.startsWith(word))
        return 1;
    if (low.split(/[_./-]/).some(part => part.startsWith(word)))
        return 2;
    if (low.includes(word))
        return 3;
    return line.toLowerCase().includes(word) ? 5 : -1;
}

/* The names that fit all words, the best first. */
function search(text)
{
    const words = text.replace(/\(\d?\)/g, "").split(/\s+/).filter(Boolean);
    const found = [];

    for (const row of names) {
        let sum = 0;

        for (const word of words) {
            const one = rank(row[0], row[3], word);

            if (one < 0) {
                sum = -1;
                break;
            }
            sum += one;
        }
        if (sum >= 0)
            found.push([sum, row]);
    }
    found.sort((a, b) => a[0] - b[0] || a[1][0].length - b[1][0].length || (a[1][0] < b[1][0] ? -1 : 1));
    return found.map(pair => pair[1]);
}

function show()
{
    const text = field.value.trim();
    const rows = text === "" ? [] : search(text);

    list.replaceChildren(...rows.slice(0, shown).map(([name, kind, page, line]) => {
        const item = document.createElement("li");
        const link = document.createElement("a");
        const sort = document.createElement("small");
        const words = document.createElement("span");

        link.href = page;
        link.textContent = name;
        sort.textContent = kind;
        words.textContent = line;
        item.append(link, sort, words);
        return item;
    }));
    list.hidden = rows.length === 0;
    document.getElementById("none").hidden = text === "" || rows.length > 0;
    document.getElementById("shelf").hidden = text !== "";
    choose(rows.length > 0 ? 0 : -1);
}

function choose(at)
{
    chosen = Math.max(Math.min(at, list.children.length - 1), -1);
    [...list.children].forEach((item, i) => item.classList.toggle("chosen", i === chosen));
    if (chosen > 0)
        list.children[chosen].scrollIntoView({block: "nearest"});
}

field.addEventListener("input", () => {
    show();
    history.replaceState(null, "", field.value === "" ? "index.html" : "?q=" + encodeURIComponent(field.value));
});
field.addEventListener("keydown", event => {
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
        choose(chosen + (event.key === "ArrowDown" ? 1 : -1));
        event.preventDefault();
    } else if (event.key === "Enter" && chosen >= 0) {
        location.href = list.children[chosen].firstChild.href;
        event.preventDefault();
    }
});
document.addEventListener("keydown", event => {
    if (event.key === "/" && document.activeElement !== field) {
        field.focus();
        event.preventDefault();
    }
});
field.value = new URLSearchParams(location.search).get("q") || "";
field.focus();
show();
