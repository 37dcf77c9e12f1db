"use strict";

/* Small helps for pages that work without them. Text from the server is only ever set as text. */

const all = (selector, root = document) => Array.from(root.querySelectorAll(selector));
const style = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

/* Forms: those that send themselves when a choice is made, and the link that signs in. */
function forms() {
  all("[data-submit]").forEach((field) => field.addEventListener("change", () => field.form.requestSubmit()));
  all("form[data-auto]").forEach((form) => form.requestSubmit());
  /* Fields that were left empty need not stand in the address. */
  all("form[method=get]").forEach((form) => form.addEventListener("submit", () => {
    const empty = all("input, select", form).filter((field) => field.name && !field.value && !field.disabled);
    empty.forEach((field) => { field.disabled = true; });
    setTimeout(() => empty.forEach((field) => { field.disabled = false; }), 0);
  }));
}

/* The note of what was done leaves the address, so that a reload does not say it again. */
function done() {
  if (!document.querySelector("[data-done]")) return;
  const here = new URL(location.href);
  here.searchParams.delete("done");
  history.replaceState(null, "", here);
}

/* A section's length as the server counts it: characters of its JSON. */
function lengths() {
  all("textarea[data-length]").forEach((area) => {
    const cap = document.getElementById(area.dataset.length);
    const says = area.form.querySelector("[data-shows-length]");
    const show = () => {
      const length = Array.from(JSON.stringify(area.value)).length;
      const room = Number(cap.value) - length;
      says.textContent = room >= 0
        ? `${length.toLocaleString()} characters, room for ${room.toLocaleString()} more`
        : `${length.toLocaleString()} characters, ${(-room).toLocaleString()} too many`;
      says.classList.toggle("over", room < 0);
    };
    area.addEventListener("input", show);
    cap.addEventListener("input", show);
    show();
  });
}

function copying() {
  all("[data-copy]").forEach((button) => button.addEventListener("click", async () => {
    const text = button.parentElement.querySelector("pre").textContent;
    try {
      await navigator.clipboard.writeText(text);
      button.textContent = "Copied";
    } catch {
      const range = document.createRange();
      range.selectNodeContents(button.parentElement.querySelector("pre"));
      getSelection().removeAllRanges();
      getSelection().addRange(range);
      button.textContent = "Selected";
    }
    setTimeout(() => { button.textContent = "Copy"; }, 2000);
  }));
}

/* Charts. Drawn again when the width or the colours change. */
const LINES = ["--line-1", "--line-2", "--line-3", "--line-4", "--line-5", "--line-6"];
const drawn = new Map();

function draw(place) {
  const data = JSON.parse(place.dataset.chart);
  const axis = { stroke: style("--faint"), grid: { stroke: style("--rule"), width: 1 }, ticks: { show: false }, font: "12px system-ui" };
  const series = data.lines.map((line, number) => ({
    label: line.name,
    stroke: style(LINES[number % LINES.length]),
    fill: style(LINES[number % LINES.length]) + "22",
    width: 2,
    points: { show: false },
  }));
  drawn.get(place)?.destroy();
  const height = 200;
  const date = { year: "numeric", month: "short", day: "numeric", timeZone: "UTC" };
  drawn.set(place, new uPlot({
    width: Math.max(place.clientWidth, 200),
    height,
    tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1000), "UTC"),
    cursor: { y: false },
    scales: { y: { range: (_, least, most) => [0, Math.max(most * 1.1, 4)] } },
    axes: [axis, { ...axis, size: 44, incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 2e4, 5e4, 1e5, 1e6] }],
    series: [{ label: "Day", value: (_, seconds) => (seconds == null ? "" : new Date(seconds * 1000).toLocaleDateString(undefined, date)) }, ...series],
  }, [data.x, ...data.lines.map((line) => line.y)], place));
}

function charts() {
  const places = all("[data-chart]");
  if (!places.length || typeof uPlot === "undefined") return;
  const widths = new WeakMap();
  const watch = new ResizeObserver((entries) => entries.forEach(({ target }) => {
    if (widths.get(target) === target.clientWidth) return;
    widths.set(target, target.clientWidth);
    draw(target);
  }));
  places.forEach((place) => watch.observe(place));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => places.forEach(draw));
}

/* Ask the MCP endpoint as an agent does: greet it, and list its tools. */
async function ask(path, token, body) {
  const headers = { "content-type": "application/json", accept: "application/json, text/event-stream" };
  if (token) headers.authorization = `Bearer ${token}`;
  if (ask.session) headers["mcp-session-id"] = ask.session;
  const answer = await fetch(path, { method: "POST", headers, body: JSON.stringify(body), credentials: "omit" });
  ask.session = answer.headers.get("mcp-session-id") || ask.session;
  const text = await answer.text();
  if (!answer.ok) {
    let message = `the server said ${answer.status}`;
    try { message = JSON.parse(text).detail.message; } catch { /* not ours */ }
    throw new Error(message);
  }
  const line = text.startsWith("{") ? text : text.split("\n").find((one) => one.startsWith("data:"))?.slice(5);
  return line ? JSON.parse(line) : null;
}

function checking() {
  all("form[data-check]").forEach((form) => form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const says = document.querySelector("[data-check-says]");
    const token = form.elements.token?.value.trim();
    says.className = "note";
    says.textContent = "Asking…";
    try {
      ask.session = null;
      const version = "2025-06-18";
      const hello = await ask(form.dataset.check, token, { jsonrpc: "2.0", id: 1, method: "initialize", params: { protocolVersion: version, capabilities: {}, clientInfo: { name: "loom-dashboard-check", version: "1" } } });
      await ask(form.dataset.check, token, { jsonrpc: "2.0", method: "notifications/initialized" });
      const tools = await ask(form.dataset.check, token, { jsonrpc: "2.0", id: 2, method: "tools/list" });
      const server = hello.result.serverInfo;
      says.textContent = `It is reached: ${server.name} ${server.version} offers ${tools.result.tools.length} tools.`;
      says.classList.add("good");
    } catch (error) {
      says.textContent = `It is not reached: ${error.message}`;
      says.classList.add("bad");
    }
  }));
}

document.addEventListener("DOMContentLoaded", () => {
  [forms, done, lengths, copying, charts, checking].forEach((part) => part());
});
