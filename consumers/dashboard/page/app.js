// The page shows the newest state, which server-sent events deliver, in the view that
// the URL names. A report has its state inside.
"use strict";

let state = null; // the newest snapshot
let updates = 0;

const views = {
  training: { id: "training", show: showTraining, open: (_, query) => openTraining(query) },
  pipeline: { id: "pipeline", show: showPipeline },
  book: { id: "book", show: showBook, open: (_, query) => openBook(query) },
  group: { id: "group", open: openGroup },
  run: { id: "about", show: showAbout },
};

// ownAttempt returns the number of the attempt, without those that a fork has from its origin.
const ownAttempt = (s) => s.attempt - (s.inherited_attempts ?? 0);

function route() {
  const [path, query] = location.hash.replace(/^#\/?/, "").split("?");
  const [view, ...rest] = path.split("/");
  let name = rest.join("/");
  try {
    name = decodeURIComponent(name);
  } catch { /* a name that is not encoded is itself */ }
  return { view: view in views ? view : "training", name, query: new URLSearchParams(query ?? "") };
}

function openTraining(query) {
  const wanted = (query.get("with") ?? "").split(",").filter(Boolean);
  const have = chartState.runs.slice(1).map((r) => r.name);
  for (const name of wanted) if (!have.includes(name) && !saved) overlay(name);
}

function open() {
  const { view, name, query } = route();
  for (const v of Object.values(views)) byId(v.id).hidden = v !== views[view];
  for (const link of document.querySelectorAll("nav a")) {
    if (link.getAttribute("href") === "#/" + view) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  views[view].open?.(name, query);
  if (state) views[view].show?.(state);
}

function progressText(s) {
  switch (s.phase) {
    case "evaluating": return `evaluating ${s.evals.at(-1).name}: ${whole(s.done)} of ${whole(s.total)} groups`;
    case "training": return `step ${whole(s.step)} of ${whole(s.steps)}`;
    case "finished": return `${s.reason} after ${whole(s.step)} of ${whole(s.steps)} steps`;
  }
  return "starting";
}

function show(s) {
  state = s;
  takeSeries(s);
  setText("run", s.run || none);
  document.title = s.run ? visible(`${progressText(s)} – ${s.run}`) : "codea1";
  setText("progress_text", progressText(s));
  setText("left", s.seconds_left === null || s.phase === "finished" ? "" : duration(s.seconds_left) + (s.left_of_phase ? " left of this evaluation" : " left"));
  const progress = byId("progress");
  progress.max = s.total || 1;
  progress.value = s.phase === "finished" ? progress.max : s.done;
  const end = byId("end");
  end.hidden = s.phase !== "finished";
  if (s.phase === "finished") setText("end", `Finished${s.report && !saved ? `; report at ${s.report}` : ""}. Last event: ${s.newest}, ${moment(s.last)}.`);
  const meta = [];
  if (s.problem_set) meta.push(`${whole(s.problems)} problems of ${s.problem_set}`);
  if (ownAttempt(s) > 1) meta.push(`attempt ${ownAttempt(s)}`);
  meta.push(plural(s.event_count, "event"));
  if (s.quarantined > 0) meta.push(`${whole(s.quarantined)} messages are quarantined: they are no events of the run`);
  byId("meta").replaceChildren(texts(meta.join(" · ")),
    saved ? "" : el("span", null, " · ", el("a", { href: "api/state" }, "state as JSON"), " · ", el("a", { href: "metrics" }, "metrics"), " · update ", el("span", { id: "updates" }, String(++updates))));
  views[route().view].show?.(s);
}

function connection(kind, text) {
  const element = byId("connection");
  if (element.className === kind && element.textContent === text) return;
  element.className = kind;
  element.textContent = text;
}

// follow reads the stream. The browser opens it again after a failure; after a
// refusal this function does.
function follow() {
  const source = new EventSource("events");
  source.addEventListener("open", () => connection("live", "live"));
  source.addEventListener("state", (message) => {
    show(JSON.parse(message.data));
    connection("live", state.phase === "finished" ? "finished" : "live");
  });
  source.addEventListener("error", () => {
    if (state?.phase === "finished") connection("ended", "finished; its process has ended");
    else connection("lost", "connection lost; reconnecting");
    if (source.readyState === EventSource.CLOSED) {
      source.close();
      setTimeout(follow, 3000);
    }
  });
}

addEventListener("hashchange", () => { open(); scrollTo(0, 0); });
makeTools();
open();
if (saved) {
  show(saved.state);
  connection("ended", "report");
} else follow();
