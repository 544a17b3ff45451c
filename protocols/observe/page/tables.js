// Tables that are sorted by a press on the head of a column.

const ROWS_MAX = 200; // rows that are shown

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
    const scroll = element("div", "table", table);
    scroll.tabIndex = 0;
    scroll.setAttribute("role", "group");
    scroll.setAttribute("aria-labelledby", id + "-title");
    $(id).replaceChildren(scroll);
    this.rows = [];
    this.showOrder();
  }

  head(title, words, column) {
    const button = element("button", "", title);
    button.type = "button";
    button.addEventListener("click", () => {
      this.isDescending = this.sortedBy === column ? !this.isDescending : words !== undefined;
      this.sortedBy = column;
      this.showOrder();
      this.show(this.rows);
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
    const value = this.columns[this.sortedBy][1];
    const sign = this.isDescending ? -1 : 1;
    const sorted = [...rows].sort((a, b) => {
      const [x, y] = [value(a), value(b)];
      return sign * (typeof x === "string" ? x.localeCompare(y) : x - y);
    }).slice(0, ROWS_MAX);
    while (this.body.children.length > sorted.length) this.body.lastChild.remove();
    while (this.body.children.length < sorted.length) this.body.append(this.emptyRow());
    sorted.forEach((row, i) => {
      const cells = this.body.children[i].children;
      this.columns.forEach(([, value_, words], column) => {
        say(cells[column], words ? words(value_(row)) : String(value_(row)));
      });
    });
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
