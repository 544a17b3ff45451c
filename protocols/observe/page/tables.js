// Tables that are sorted by a press on the head of a column.

const ROWS_MAX = 200; // rows that are shown
const ROWS_A_FRAME = 16; // rows whose figures change in one frame, because each costs layout
const NUMBER_REM = 4.6; // width of a column of numbers, and of one of words
const WORDS_REM = 10;

// A column is [title, value of a row, words of a value]. Words of undefined: the value is a text.
class Table {
  constructor(id, columns, sortedBy) {
    this.id = id;
    this.columns = columns;
    this.sortedBy = sortedBy;
    this.isDescending = columns[sortedBy][2] !== undefined;
    const heads = columns.map(([title, , words], i) => this.head(title, words, i));
    this.body = element("tbody", "");
    const table = element("table", "", element("thead", "", element("tr", "", ...heads)), this.body);
    this.heads = heads;
    const rem = columns.reduce((sum, [, , words]) => sum + (words ? NUMBER_REM : WORDS_REM), 0);
    table.style.minWidth = rem + "rem";
    const scroll = element("div", "table", table);
    scroll.tabIndex = 0;
    scroll.setAttribute("role", "group");
    scroll.setAttribute("aria-labelledby", id + "-title");
    $(id).replaceChildren(scroll);
    this.rows = [];
    this.isSeen = false;
    this.watcher = new IntersectionObserver((changes) => {
      this.isSeen = changes[changes.length - 1].isIntersecting;
      this.draw();
    }, { rootMargin: "50px" });
    this.watcher.observe(scroll);
    this.showOrder();
  }

  head(title, words, column) {
    const button = element("button", "", title);
    button.type = "button";
    button.addEventListener("click", () => {
      this.isDescending = this.sortedBy === column ? !this.isDescending : words !== undefined;
      this.sortedBy = column;
      this.showOrder();
      this.draw();
    });
    const head = element("th", words ? "" : "words", button);
    head.scope = "col";
    return head;
  }

  showOrder() {
    this.heads.forEach((head, i) => {
      if (i === this.sortedBy) head.setAttribute("aria-sort", this.isDescending ? "descending" : "ascending");
      else head.removeAttribute("aria-sort");
    });
  }

  show(rows) {
    this.rows = rows;
    this.draw();
  }

  // A table that is out of sight has the height that it needs, and old figures.
  draw() {
    if (!this.isSeen && this.body.children.length === Math.min(ROWS_MAX, this.rows.length)) return;
    const value = this.columns[this.sortedBy][1];
    const sign = this.isDescending ? -1 : 1;
    const sorted = [...this.rows].sort((a, b) => {
      const [x, y] = [value(a), value(b)];
      return sign * (typeof x === "string" ? x.localeCompare(y) : x - y);
    }).slice(0, ROWS_MAX);
    while (this.body.children.length > sorted.length) this.body.lastChild.remove();
    this.sorted = sorted;
    this.fill(sorted, 0);
  }

  // Fill rows from one on, some in this frame and the others in the next ones.
  fill(sorted, begin) {
    if (sorted !== this.sorted) return; // there are newer figures
    sorted.slice(begin, begin + ROWS_A_FRAME).forEach((row, i) => {
      if (this.body.children.length === begin + i) this.body.append(this.emptyRow());
      const cells = this.body.children[begin + i].children;
      this.columns.forEach(([, value, words], column) => {
        say(cells[column], words ? words(value(row)) : String(value(row)));
      });
    });
    if (begin + ROWS_A_FRAME < sorted.length) requestAnimationFrame(() => this.fill(sorted, begin + ROWS_A_FRAME));
  }

  emptyRow() {
    return element("tr", "", ...this.columns.map(([, , words], column) => {
      const cell = element(column === 0 ? "th" : "td", words ? "" : "words", "");
      if (column === 0) cell.scope = "row";
      return cell;
    }));
  }
}

// A number that is a name, such as that of a thread.
const plain = (number) => String(number);
