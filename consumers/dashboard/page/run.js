// The view of the run: configuration, build, machine, events, what went wrong.
"use strict";

let lettersRead = 0;
async function readLetters() {
  lettersRead = Date.now();
  try {
    const d = await ask("deadletters", {});
    fill("letters", d.letters.map((l) => [moment(l.at), l.stage, l.type, l.group ? groupLink(l.group) : "", n(whole(l.deliveries)), [l.reason, "long"]]),
      d.known ? "none" : `The bus has them: codea1 deadletter list --run ${state?.run ?? "RUN"}`);
  } catch (error) {
    fill("letters", [], error.message);
  }
}

function showAbout(s) {
  const facts = [
    ["run", s.run || none], ["attempt", s.inherited_attempts ? `${whole(ownAttempt(s))} of the fork, ${whole(s.attempt)} in the log` : whole(s.attempt)], ["started", moment(s.started)], ["newest event", `${s.newest || none}, ${moment(s.last)}`],
    ["steps", `${whole(s.step)} of ${whole(s.steps)}`], ["problems", s.problem_set ? `${whole(s.problems)} of ${s.problem_set}` : none],
    ["build", s.build || none], ["machine of this page", s.machine || none], ["time limit", s.budget > 0 ? duration(s.budget) : "none"], ["report", s.report || none],
    ...s.policies.map((p) => [`checkpoint, ${p.role}`, p.checkpoint]),
  ];
  fill("facts", facts.map(([name, value]) => [[name, "quiet"], [value, "long"]]), none);
  fill("events", s.events.map((e) => [e.name, n(whole(e.count))]), "none");
  fill("drops", s.recent_drops.map((d) => [clock(d.at), groupLink(d.group), d.stage, d.reason, [d.detail, "long"]]), "none");
  fill("refusals", (s.refusals ?? []).map((r) => [r.position || "start", [r.reason, "long"]]), s.quarantined > 0 ? `${whole(s.quarantined)}; none of them was read here` : "none");
  if (byId("config").textContent !== visible(s.config)) setText("config", s.config || none);
  if (Date.now() - lettersRead > 5000) readLetters();
}
