// The view of the Mistake Book.
"use strict";

const bookQuery = { q: "", problem: "", sort: "count" };
let bookAsked = 0; // questions so far; only the newest answer is shown
let bookShown = -1; // entered and left tests when it was read

function bookURL() {
  const query = Object.fromEntries(Object.entries(bookQuery).filter(([key, value]) => value && !(key === "sort" && value === "count")));
  const text = new URLSearchParams(query).toString();
  return "#/book" + (text ? "?" + text : "");
}

// history of a test as a small picture: its count over the steps.
function countLine(t) {
  const width = Math.max(1, (state?.step ?? 0) - 1, t.changes.at(-1).step - 1);
  const high = Math.max(1, ...t.changes.map((c) => c.count));
  const x = (c) => 2 + (116 * (c.step - 1)) / width;
  const y = (c) => 26 - (22 * c.count) / high;
  let d = "";
  t.changes.forEach((c, i) => { d += i === 0 ? `M${x(c)} 26V${y(c)}` : `H${x(c)}V${y(c)}`; });
  const picture = svg("svg", { viewBox: "0 0 120 30", width: 120, height: 30, class: "count", role: "img", "aria-label": "count by step: " + t.changes.map((c) => `step ${c.step}: ${c.count}`).join(", ") });
  picture.append(svg("path", { d: d + "H118" }));
  return picture;
}

function bookTest(t) {
  const answers = (list) => (list.length === 0 ? "" : (list.length === 1 ? ", answer " : ", answers ") + list.map((a) => a + 1).join(", "));
  return el("details", { class: "panel test" },
    el("summary", null,
      el("span", { class: "badge", title: "count in the book" }, whole(t.count)),
      el("code", null, python(t.call), " == ", python(t.expected)),
      el("span", { class: "note" }, t.question), countLine(t)),
    el("p", null, el("a", { href: "#/book?problem=" + encodeURIComponent(t.problem) }, t.problem), " ", t.question),
    el("ol", { class: "changes" }, t.changes.map((c) => el("li", null,
      `step ${c.step}: `, el("b", { class: c.change > 0 ? "bad" : "good" }, c.change > 0 ? `+${c.change}` : `−${-c.change}`),
      ` to ${c.count}, by `, groupLink(c.group), c.change > 0 ? answers(c.answers) + " failed it" : answers(c.answers) + " passed it"))));
}

// readBook reads the tests again. A reading that the user did not ask for closes no
// history.
async function readBook(unasked) {
  const asked = ++bookAsked;
  if (state) bookShown = state.book.entered + state.book.left;
  let view;
  try {
    view = await ask("book", bookQuery);
  } catch (error) {
    setText("book_summary", error.message);
    return;
  }
  if (asked !== bookAsked || (unasked && byId("book_tests").querySelector("details[open]"))) return;
  const parts = [`${plural(view.size, "test")} in the book`, `${whole(view.matches)} found` + (view.tests.length < view.matches ? `, the first ${view.tests.length} are shown` : "")];
  if (view.unlisted > 0) parts.push(`${whole(view.unlisted)} more have no text here; codea1 mistakes list shows all`);
  if (view.kept !== undefined && view.kept < view.size) parts.push(`this report holds the first ${whole(view.kept)}`);
  byId("book_summary").replaceChildren(texts(parts.join(" · ")),
    bookQuery.problem ? el("span", null, " · only ", bookQuery.problem, " ", el("a", { href: "#/book" }, "show all")) : "");
  byId("book_tests").replaceChildren(...view.tests.map(bookTest));
  const most = Math.max(1, ...view.problems.map((p) => p.failed));
  byId("book_problems").replaceChildren(el("div", { class: "panel" }, el("h3", null, "What breaks answers most"),
    view.problems.length === 0 ? el("p", { class: "note" }, "No test has entered the book yet.") : null,
    el("ol", { class: "ranking" }, view.problems.map((p) => el("li", null,
      el("a", { href: "#/book?sort=failed&problem=" + encodeURIComponent(p.problem) }, p.problem),
      el("span", { class: "note" }, ` ${whole(p.failed)} failed, ${plural(p.tests, "test")}`),
      el("meter", { min: "0", max: String(most), value: String(p.failed), "aria-label": `failures of ${p.problem}` }),
      el("p", null, p.question))))));
}

function openBook(query) {
  bookQuery.q = query.get("q") ?? "";
  bookQuery.problem = query.get("problem") ?? "";
  bookQuery.sort = query.get("sort") ?? "count";
  byId("book_sort").value = bookQuery.sort;
  if (document.activeElement !== byId("book_search")) byId("book_search").value = bookQuery.q;
  return readBook();
}

// A change of the book is shown unless the user reads the history of a test.
let bookTimer = null;
function showBook(s) {
  if (bookTimer || s.book.entered + s.book.left === bookShown || byId("book_tests").querySelector("details[open]")) return;
  bookTimer = setTimeout(() => {
    bookTimer = null;
    if (!byId("book").hidden) readBook(true);
  }, 2000);
}

let typing = null;
byId("book_search").addEventListener("input", (e) => {
  clearTimeout(typing);
  typing = setTimeout(() => {
    bookQuery.q = e.target.value;
    history.replaceState(null, "", bookURL());
    readBook();
  }, 150);
});
byId("book_sort").addEventListener("change", (e) => {
  bookQuery.sort = e.target.value;
  location.hash = bookURL();
});
