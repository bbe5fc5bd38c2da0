// What all views use. Every text of a run reaches the page through texts(), so none
// can become HTML, and none can hide a part of itself.
"use strict";

const byId = (id) => document.getElementById(id);

// The text of a number that is not known (null).
const none = "–";

// Control characters, and those that change the direction of a text or have no width.
const hiddenChars = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202f\u205f-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb]|[\u{e0000}-\u{e0fff}]|[\ud800-\udfff]/gu;
const named = (c) => "⟨U+" + c.codePointAt(0).toString(16).toUpperCase().padStart(4, "0") + "⟩";

// visible returns a text with a name in place of each hidden character.
const visible = (text) => String(text).replace(hiddenChars, named);

// texts returns nodes for a text. Hidden characters stand out.
function texts(text) {
  const all = document.createDocumentFragment();
  const s = String(text);
  let at = 0;
  for (const m of s.matchAll(hiddenChars)) {
    if (m.index > at) all.append(s.slice(at, m.index));
    const mark = document.createElement("span");
    mark.className = "ctl";
    mark.textContent = named(m[0]);
    all.append(mark);
    at = m.index + m[0].length;
  }
  all.append(s.slice(at));
  return all;
}

// el makes an element. Of the attributes only these reach the document: no model
// output becomes a name of one, and a link begins with # in every call.
function el(name, attributes, ...children) {
  const e = document.createElement(name);
  for (const [key, value] of Object.entries(attributes ?? {})) {
    if (key === "on") for (const [type, f] of Object.entries(value)) e.addEventListener(type, f);
    else if (value !== null && value !== undefined && value !== false) e.setAttribute(key, key === "title" ? visible(value) : value);
  }
  for (const c of children.flat(Infinity)) {
    if (c === null || c === undefined || c === false) continue;
    e.append(c instanceof Node ? c : texts(c));
  }
  return e;
}

const setText = (id, text) => byId(id).replaceChildren(texts(text));

// Numbers. null is a number that is not known yet.
const fixed = (x, digits) => (x === null || x === undefined ? none : x.toFixed(digits));
const percent = (x) => (x === null || x === undefined ? none : (100 * x).toFixed(1) + "%");
const signed = (x) => (x === null || x === undefined ? none : (x < 0 ? "−" : "+") + Math.abs(x).toFixed(2));
const whole = (n) => n.toLocaleString("en");
const short = (x) => {
  if (x === null || x === undefined) return none;
  if (x !== 0 && Math.abs(x) < 0.001) return x.toExponential(1);
  return Number(x.toPrecision(3)).toString();
};
const clock = (iso) => new Date(iso).toLocaleTimeString("en-GB");
const moment = (iso) => (iso ? iso.slice(0, 19).replace("T", " ") + " UTC" : none);
const plural = (n, word) => `${whole(n)} ${word}${n === 1 ? "" : "s"}`;

function duration(seconds) {
  const s = Math.round(seconds);
  if (s < 60) return s + "s";
  const pad = (n) => String(n).padStart(2, "0");
  if (s < 3600) return Math.floor(s / 60) + "m" + pad(s % 60) + "s";
  return Math.floor(s / 3600) + "h" + pad(Math.floor((s % 3600) / 60)) + "m";
}

// Tables. A row is a list of cells; a cell is a text, a node, or [text, class].
function fill(id, rows, textIfEmpty) {
  const table = byId(id);
  const body = el("tbody");
  if (rows.length === 0) {
    body.append(el("tr", null, el("td", { class: "none", colspan: table.tHead.rows[0].cells.length }, textIfEmpty)));
  }
  for (const row of rows) {
    body.append(el("tr", null, row.map((cell) => (Array.isArray(cell) ? el("td", { class: cell[1] }, cell[0]) : el("td", null, cell)))));
  }
  table.replaceChild(body, table.tBodies[0]);
}

const n = (text) => [text, "n"];
const groupLink = (name, text) => el("a", { href: "#/group/" + encodeURIComponent(name) }, text ?? name);

// python returns nodes for Python source, with the classes of style.css.
const pythonToken = /(#[^\n]*)|([rRbBfFuU]{0,2}(?:"""[^]*?(?:"""|$)|'''[^]*?(?:'''|$)|"(?:\\[^]|[^"\\\n])*"?|'(?:\\[^]|[^'\\\n])*'?))|(\d[\w.]*)|([A-Za-z_]\w*)/g;
const pythonWords = new Set(("and as assert async await break class continue def del elif else except finally for from global if import in is lambda " +
  "match nonlocal not or pass raise return try while with yield").split(" "));
const pythonNames = new Set(("True False None abs all any bool dict enumerate filter float frozenset int isinstance len list map max min ord pow print " +
  "range reversed round set sorted str sum tuple type zip self").split(" "));

function python(source) {
  const all = document.createDocumentFragment();
  const add = (text, kind) => all.append(kind ? el("span", { class: kind }, text) : texts(text));
  let at = 0;
  let previous = "";
  for (const m of source.matchAll(pythonToken)) {
    if (m.index > at) add(source.slice(at, m.index));
    const [text, comment, string, number, word] = m;
    let kind = comment ? "py-comment" : string ? "py-string" : number ? "py-number" : "";
    if (word) kind = pythonWords.has(word) ? "py-word" : previous === "def" || previous === "class" ? "py-def" : pythonNames.has(word) ? "py-name" : "";
    previous = word ?? "";
    add(text, kind);
    at = m.index + text.length;
  }
  if (at < source.length) add(source.slice(at));
  return all;
}

const code = (source) => el("pre", { class: "code", tabindex: "0" }, python(source));

// download offers a blob as a file.
function download(name, blob) {
  const a = el("a", { href: URL.createObjectURL(blob), download: name });
  a.click();
  setTimeout(() => URL.revokeObjectURL(a.href), 10000);
}

// The data in a report; null on a live page.
const saved = byId("data") ? JSON.parse(byId("data").textContent) : null;

// ask returns the answer of the server, or of the data in a report.
async function ask(path, query) {
  if (saved) return answer[path](query);
  const response = await fetch(`api/${path}?` + new URLSearchParams(query));
  if (!response.ok) throw new Error((await response.text()).trim());
  return response.json();
}

const answer = {
  book: ({ q, problem, sort }) => {
    const text = q.toLowerCase();
    const rank = { failed: (t) => t.failed, recent: (t) => t.changes.at(-1).step }[sort] ?? ((t) => t.count);
    const tests = saved.book.tests
      .filter((t) => (!problem || t.problem === problem) && [t.question, t.call, t.expected, t.problem].some((s) => s.toLowerCase().includes(text)))
      .sort((a, b) => rank(b) - rank(a));
    return { ...saved.book, tests: tests.slice(0, 50), matches: tests.length, kept: saved.book.tests.length };
  },
  groups: ({ step, problem }) => {
    const groups = saved.groups.groups.filter((g) => (!step || g.step === Number(step)) && (!problem || g.problem === problem));
    return { groups: groups.slice(0, 100), matches: groups.length, cut: saved.groups.matches - saved.groups.groups.length };
  },
  group: ({ name }) => {
    if (saved.whole[name]) return saved.whole[name];
    throw new Error("The report holds a few groups. Show the others with: codea1 dashboard --run " + saved.state.run);
  },
  deadletters: () => ({ known: false, letters: [] }),
  runs: () => ({ runs: [] }),
};
