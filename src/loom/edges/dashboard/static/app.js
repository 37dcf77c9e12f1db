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

/* Whether what stands in an editor is JSON, and where it is not. */
function editors() {
  all("textarea[data-json]").forEach((area) => {
    const says = area.form.querySelector("[data-json-says]");
    const show = () => {
      let fault = "";
      try { JSON.parse(area.value); } catch (error) { fault = error.message; }
      says.textContent = fault || "This is JSON; the server checks the rest.";
      says.classList.toggle("over", Boolean(fault));
    };
    area.addEventListener("input", show);
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

/* Files, sent in parts, so that each shows how far it is. Leaving the page stops it; what came is then forgotten. */
const PART_BYTES = 1024 * 1024;

async function post(url, csrf, body, media) {
  const answer = await fetch(url, { method: "POST", headers: { "x-loom-csrf": csrf, "content-type": media }, body });
  let data = {};
  try { data = await answer.json(); } catch { /* not ours */ }
  if (!answer.ok) throw new Error(data.detail?.message || `the server said ${answer.status}`);
  return data;
}

async function sendFile(file, place) {
  const line = document.createElement("li");
  const [name, bar, says] = ["bdi", "progress", "span"].map((kind) => document.createElement(kind));
  name.textContent = file.name;
  bar.max = Math.max(file.size, 1);
  bar.value = 0;
  bar.setAttribute("aria-label", file.name);
  line.append(name, bar, says);
  place.querySelector("[data-uploads]").append(line);
  const { part, finish, csrf } = place.dataset;
  try {
    let id = "";
    for (let number = 0; number * PART_BYTES < file.size || number === 0; number += 1) {
      const url = new URL(part, location.href);
      url.searchParams.set("part", number);
      if (id) url.searchParams.set("upload_id", id);
      const piece = file.slice(number * PART_BYTES, (number + 1) * PART_BYTES);
      id = (await post(url, csrf, piece, "application/octet-stream")).upload_id;
      bar.value = Math.min(file.size, (number + 1) * PART_BYTES);
      says.textContent = `${Math.round((bar.value / bar.max) * 100)} %`;
    }
    const form = new URLSearchParams({ upload_id: id, file_name: file.name });
    const made = await post(finish, csrf, form, "application/x-www-form-urlencoded");
    says.textContent = made.changed ? `added, revision ${made.revision}` : "already here";
    says.className = "good";
    return true;
  } catch (error) {
    says.textContent = error.message;
    says.className = "bad";
    return false;
  }
}

function uploading() {
  all("[data-drop]").forEach((place) => {
    const take = async (files) => {
      let sent = 0;
      for (const file of files) sent += (await sendFile(file, place)) ? 1 : 0;
      if (sent) htmx.ajax("GET", place.dataset.next, { target: "#documents", select: "#documents", swap: "outerHTML" });
    };
    place.querySelector("[data-files]").addEventListener("change", (event) => take(Array.from(event.target.files)));
    ["dragenter", "dragover"].forEach((name) => place.addEventListener(name, (event) => {
      event.preventDefault();
      place.classList.add("over");
    }));
    ["dragleave", "drop"].forEach((name) => place.addEventListener(name, () => place.classList.remove("over")));
    place.addEventListener("drop", (event) => {
      event.preventDefault();
      take(Array.from(event.dataTransfer.files));
    });
  });
}

/* Charts. Drawn again when the width or the colours change. */
const LINES = ["--line-1", "--line-2", "--line-3", "--line-4", "--line-5", "--line-6"];
const drawn = new Map();

function draw(place) {
  const data = JSON.parse(place.dataset.chart);
  const axis = { stroke: style("--faint"), grid: { stroke: style("--rule"), width: 1 }, ticks: { show: false }, font: "12px system-ui" };
  /* Bars that stand on each other: each reaches down to the axis, and those below are drawn over it. */
  const sums = data.x.map(() => 0);
  const stacked = data.lines.map((line) => line.y).reverse().map((counts) => counts.map((count, day) => (sums[day] += count))).reverse();
  const bars = uPlot.paths.bars({ size: [0.7, 28], radius: 0.15 });
  const series = data.lines.map((line, number) => ({
    label: line.name,
    stroke: style(LINES[number % LINES.length]),
    fill: style(LINES[number % LINES.length]),
    width: 0,
    paths: bars,
    points: { show: false },
    value: (_, __, ___, day) => (day == null ? "" : line.y[day].toLocaleString()),
  }));
  drawn.get(place)?.destroy();
  const date = { year: "numeric", month: "short", day: "numeric", timeZone: "UTC" };
  const label = { month: "short", day: "numeric", timeZone: "UTC" };
  drawn.set(place, new uPlot({
    width: Math.max(place.clientWidth, 200),
    height: 200,
    tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1000), "UTC"),
    cursor: { y: false, points: { show: false } },
    legend: { markers: { width: 0 } },
    scales: {
      x: { range: (_, first, last) => [first - 43200, last + 43200] },
      y: { range: (_, least, most) => [0, Math.max(most * 1.1, 4)] },
    },
    axes: [
      { ...axis, grid: { show: false }, values: (_, days) => days.map((seconds) => new Date(seconds * 1000).toLocaleDateString(undefined, label)) },
      { ...axis, size: 48, incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 2e4, 5e4, 1e5, 1e6] },
    ],
    series: [
      { label: "Day", value: (_, seconds) => (seconds == null ? "" : new Date(seconds * 1000).toLocaleDateString(undefined, date)) },
      ...series,
    ],
  }, [data.x, ...stacked], place));
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
  [forms, done, lengths, editors, copying, uploading, charts, checking].forEach((part) => part());
});
