// The views of groups: a list, and one group from its problem to what was trained.
"use strict";

const verdicts = {
  pass: ["✓", "pass"], fail: ["✗", "returned another value"], raised: ["!", "raised"], timeout: ["◷", "timed out"], not_run: ["·", "not run"],
};

// cell returns a cell of the matrix of verdicts.
function verdictCell(verdict, title, marks) {
  return el("td", { class: `v-${verdict in verdicts ? verdict : "not_run"} ${marks ?? ""}`, title }, (verdicts[verdict] ?? ["?"])[0]);
}

function matrix(g) {
  const tests = Math.max(0, ...g.answers.flatMap((a) => a.suites.map((s) => s.tests.length)));
  const suites = Math.max(0, ...g.answers.map((a) => a.suites.length));
  const head = el("tr", null, el("th", { scope: "col" }, "answer"), el("th", { scope: "col", class: "n" }, "reward"));
  if (g.historical.length) head.append(el("th", { scope: "colgroup", colspan: g.historical.length }, "historical"));
  if (g.golden.length) head.append(el("th", { scope: "colgroup", colspan: g.golden.length }, g.predicts ? "questions" : "golden"));
  if (tests > 0) for (let i = 0; i < suites; i++) head.append(el("th", { scope: "colgroup", colspan: tests }, `suite ${i + 1}`));
  const rows = g.answers.map((a, m) => {
    const row = el("tr", null,
      el("th", { scope: "row" }, el("a", { href: "#answer" + m, on: { click: (e) => { e.preventDefault(); byId("answer" + m).scrollIntoView(); byId("answer" + m).focus(); } } }, `${m + 1}`)),
      el("td", { class: "n" }, fixed(a.reward, 2)));
    const nothing = (text) => el("td", { class: "v-not_run", title: text }, "·");
    g.historical.forEach((h, i) => row.append(a.hist[i] ? verdictCell(a.hist[i], `${h.call} == ${h.expected}: ${verdicts[a.hist[i]]?.[1]}`, i === 0 ? "first" : "") : nothing("not run")));
    g.golden.forEach((t, i) => row.append(a.golden[i] ? verdictCell(a.golden[i].verdict, `${t}: ${a.golden[i].detail || verdicts[a.golden[i].verdict]?.[1]}`, i === 0 ? "first" : "") : nothing("not run")));
    for (let s = 0; s < suites; s++) {
      for (let i = 0; i < tests; i++) {
        const t = a.suites[s]?.tests[i];
        const marks = (i === 0 ? "first " : "") + (t?.wrong ? "wrong " : "") + (t && t.status !== "kept" ? "discarded" : "");
        row.append(t ? verdictCell(t.verdict, `${t.src}: ${t.status === "kept" ? verdicts[t.verdict]?.[1] : "discarded, " + t.status}${t.wrong ? ", wrong as stated" : ""}${t.detail ? ", " + t.detail : ""}`, marks) : el("td", { class: "nothing" + (i === 0 ? " first" : "") }));
      }
    }
    return row;
  });
  return el("div", { class: "card", tabindex: "0" }, el("table", { class: "matrix" }, el("caption", null, "Verdicts"), el("thead", null, head), el("tbody", null, rows)),
    el("p", { class: "note legend" }, Object.entries(verdicts).map(([name, [sign, text]]) => [el("span", { class: "v-" + name }, sign), ` ${text}  `]),
      el("span", { class: "v-pass wrong" }, "✓"), " wrong as stated  ", el("span", { class: "v-not_run discarded" }, "·"), " discarded"));
}

function suiteView(s, i) {
  const r = s.reward;
  const terms = r && [["reward", r.reward], ["advantage", r.advantage], ["validity", r.validity], ["adversarial", r.adversarial], ["penalty", r.penalty],
    ["pass, new", r.pass_new], ["fail, new", r.fail_new], ["pass, historical", r.pass_hist], ["fail, historical", r.fail_hist]];
  return el("details", { class: "suite" },
    el("summary", null, `Suite ${i + 1}`, r ? el("span", { class: "note" }, r.masked ? " left out: infrastructure failure" : ` reward ${fixed(r.reward, 3)}, advantage ${signed(r.advantage)}, ${r.kept} kept, ${r.invalid} wrong or discarded`) : ""),
    s.failure ? el("p", { class: "bad" }, s.failure) : null,
    terms ? el("dl", { class: "terms" }, terms.map(([name, value]) => el("div", null, el("dt", null, name), el("dd", null, short(value))))) : null,
    el("div", { class: "scroll", tabindex: "0" }, el("table", null, el("thead", null, el("tr", null, ["test", "status", "stated", "true value", "verdict", "detail"].map((h) => el("th", { scope: "col" }, h)))),
      el("tbody", null, s.tests.map((t) => el("tr", null,
        el("td", { class: "long" }, el("code", null, python(t.src))), el("td", null, t.wrong ? "wrong as stated" : t.status), el("td", { class: t.wrong ? "long bad" : "long" }, el("code", null, python(t.stated))),
        el("td", { class: "long" }, el("code", null, python(t.expected))), el("td", { class: t.verdict === "pass" ? "good" : t.verdict === "not_run" ? "" : "bad" }, t.verdict), el("td", { class: "long" }, t.detail)))))),
    el("details", null, el("summary", null, "Response"), code(s.response)));
}

function answerView(g, a, m) {
  const trained = [];
  if (a.reward !== null && !a.masked && g.recipe) trained.push("trains the Code LLM");
  if (g.top_var === m) trained.push("its suites train the Test LLM");
  return el("article", { class: "panel answer", id: "answer" + m, tabindex: "-1" },
    el("h3", null, `Answer ${m + 1}`, el("span", null,
      a.masked ? "left out: infrastructure failure" : a.reward === null ? "" : `reward ${fixed(a.reward, 3)}, advantage ${signed(a.advantage)}`,
      trained.map((t) => el("em", { class: "badge" }, t)))),
    el("p", { class: "note" }, a.tokens ? plural(a.tokens, "token") : "", a.finish === "length" ? ", cut off by the token limit" : ""),
    a.failure ? el("p", { class: "bad" }, a.failure) : null,
    a.load_error ? el("p", { class: "bad" }, "does not load: ", a.load_error) : null,
    a.judged?.length ? el("dl", { class: "terms" }, el("div", null, el("dt", null, "judged"), a.judged.map((text) => el("dd", null, text)))) : null,
    code(a.code),
    a.response ? el("details", null, el("summary", null, "Whole response"), code(a.response)) : null,
    a.suites.map(suiteView));
}

function trainedView(g) {
  if (g.dropped) return el("p", { class: "bad" }, `Dropped by ${g.dropped.stage}: ${g.dropped.reason}. `, g.dropped.detail);
  if (g.purpose === "eval") return el("p", null, "A group of an evaluation: no policy trains on it.");
  if (!g.recipe) return el("p", null, "It has no rewards yet.");
  const shown = g.answers.filter((a) => !a.masked).length;
  return el("ul", null,
    el("li", null, `Reward recipe ${g.recipe}${g.without_test ? "" : `, α ${short(g.alpha)}`}.`, g.judge ? ` Judged by ${g.judge}.` : ""),
    g.updates.map((u) => el("li", null, `Version ${u.version} of the ${u.role === "code" ? "Code" : "Test"} LLM was trained on step ${u.step} with ${plural(u.groups, "group")}; of this one on `,
      u.role === "code" ? plural(shown, "answer") + "." : g.top_var >= 0 ? `the suites of answer ${g.top_var + 1}, whose rewards vary most.` : "nothing.")),
    g.updates.length === 0 ? el("li", null, "No version that was trained on it is known yet.") : null);
}

function groupView(g) {
  const fact = (name, value) => el("div", null, el("dt", null, name), el("dd", null, value));
  return [
    el("p", { class: "crumbs" }, el("a", { href: "#/group" }, "Groups"), " / ", el("b", null, g.group)),
    el("div", { class: "panel" },
      el("h3", null, "Question ", el("span", null, el("a", { href: "#/book?problem=" + encodeURIComponent(g.problem) }, g.problem))),
      el("p", { class: "question" }, g.question),
      el("dl", { class: "terms" }, fact("step", whole(g.step)), fact("entry point", g.entry), fact("Code LLM version", whole(g.code_version)), g.without_test ? null : fact("Test LLM version", whole(g.test_version)), fact("temperature", short(g.temperature))),
      el("details", null, el("summary", null, "Ground truth"), code(g.solution))),
    g.historical.length ? el("div", { class: "card", tabindex: "0" }, el("table", null, el("caption", null, "Historical tests, from the Mistake Book"),
      el("thead", null, el("tr", null, el("th", { scope: "col" }, "test"), el("th", { scope: "col", class: "n" }, "count"))),
      el("tbody", null, g.historical.map((h) => el("tr", null, el("td", { class: "long" }, el("code", null, python(`${h.call} == ${h.expected}`))), el("td", { class: "n" }, whole(h.count))))))) : null,
    g.answers.length ? matrix(g) : null,
    el("div", { class: "panel" }, el("h3", null, "What was trained"), trainedView(g)),
    g.answers.map((a, m) => answerView(g, a, m)),
    g.deltas.length ? el("details", { class: "panel" }, el("summary", null, `${plural(g.deltas.length, "change")} of the Mistake Book`),
      el("ul", { class: "changes" }, g.deltas.map((d) => el("li", null, el("b", { class: d.change > 0 ? "bad" : "good" }, d.change > 0 ? `+${d.change} ` : `−${-d.change} `), el("code", null, python(`${d.call} == ${d.expected}`)))))) : null,
    g.events.length ? el("details", { class: "panel" }, el("summary", null, "Events"), el("ol", { class: "changes" }, g.events.map((e) => el("li", null, `${moment(e.at)} ${e.type} by ${e.source}`)))) : null,
  ].flat().filter(Boolean);
}

function groupList(view, query) {
  const link = (key, value) => "#/group?" + new URLSearchParams({ ...query, [key]: value });
  const numbers = view.groups.map((g) => el("tr", null,
    el("td", null, groupLink(g.group)), el("td", { class: "n" }, el("a", { href: link("step", g.step) }, whole(g.step))), el("td", null, g.problem ? el("a", { href: link("problem", g.problem) }, g.problem) : ""),
    el("td", { class: "n" }, fixed(g.code, 3)), el("td", { class: "n" }, fixed(g.test, 3)), el("td", { class: "n" }, percent(g.pass)), el("td", { class: "bad" }, g.dropped)));
  return [
    el("form", { class: "tools", on: { submit: (e) => { e.preventDefault(); const name = byId("group_name").value.trim(); location.hash = /^\d+$/.test(name) ? link("step", name) : "#/group/" + encodeURIComponent(name); } } },
      el("label", { class: "grow" }, "Group or step", el("input", { id: "group_name", placeholder: "s000003-q0001, or 3", autocomplete: "off", spellcheck: "false" })), el("button", null, "Open"),
      query.step || query.problem ? el("a", { href: "#/group" }, "All groups") : null),
    el("p", { class: "note" }, `${plural(view.matches, "group")}${query.step ? " of step " + query.step : ""}${query.problem ? " of " + query.problem : ""}, newest first` +
      (view.groups.length < view.matches ? `; the newest ${view.groups.length} are shown` : "") + (view.cut > 0 ? `; ${whole(view.cut)} older ones are not listed` : "")),
    el("div", { class: "card", tabindex: "0" }, el("table", null, el("thead", null, el("tr", null, ["group", "step", "problem", "Code LLM reward", "Test LLM reward", "new tests passed", "dropped"].map((h, i) =>
      el("th", { scope: "col", class: [1, 3, 4, 5].includes(i) ? "n" : null }, h)))), el("tbody", null, numbers))),
  ];
}

let groupAsked = 0;
async function openGroup(name, query) {
  const asked = ++groupAsked;
  const body = byId("group_body");
  body.replaceChildren(el("p", { class: "note" }, "reading …"));
  let content;
  try {
    if (name) content = groupView(await ask("group", { name }));
    else {
      const q = { step: query.get("step") ?? "", problem: query.get("problem") ?? "" };
      content = groupList(await ask("groups", q), q);
    }
  } catch (error) {
    content = [el("p", { class: "crumbs" }, el("a", { href: "#/group" }, "Groups")), el("p", { class: "panel" }, name ? `${name}: ` : "", error.message)];
  }
  if (asked === groupAsked) body.replaceChildren(...content);
}
