"use strict";
// Everything read from the description is shown through text nodes, so that no text can become markup.

function element(name, text, className) {
  const made = document.createElement(name);
  if (text !== undefined) made.textContent = text;
  if (className) made.className = className;
  return made;
}

// A description's paragraphs; what stands between backticks is code.
function prose(text, tag = "p") {
  return text.split(/\n{2,}/).map((paragraph) => {
    const made = element(tag);
    paragraph.replace(/\s+/g, " ").split("`").forEach((part, index) => made.append(index % 2 ? element("code", part) : part));
    return made;
  });
}

function resolved(schema, root) {
  if (!schema.$ref) return schema;
  return schema.$ref.slice(2).split("/").reduce((part, key) => part[key], root);
}

function typeOf(schema, root, depth = 0) {
  if (depth > 3) return "object";
  const known = resolved(schema, root);
  const parts = known.anyOf || known.oneOf;
  if (parts) return parts.map((part) => typeOf(part, root, depth + 1)).join(" | ");
  if (known.enum) return known.enum.map((word) => JSON.stringify(word)).join(" | ");
  if (known.const !== undefined) return JSON.stringify(known.const);
  if (known.type === "array") return `[${known.items ? typeOf(known.items, root, depth + 1) : "any"}]`;
  if (Array.isArray(known.type)) return known.type.join(" | ");
  return known.type || "any";
}

function fieldTable(schema, root) {
  const table = element("table");
  const head = element("tr");
  for (const title of ["Field", "Type", "Meaning"]) head.append(element("th", title));
  table.append(head);
  const required = new Set(schema.required || []);
  for (const [name, field] of Object.entries(schema.properties || {})) {
    const row = element("tr");
    row.append(element("td", required.has(name) ? `${name} *` : name), element("td", typeOf(field, root)));
    const known = resolved(field, root);
    const standard = field.default !== undefined && field.default !== null ? ` Default ${JSON.stringify(field.default)}.` : "";
    row.append(...prose((field.description || known.description || "") + standard, "td"));
    table.append(row);
  }
  return table;
}

function operationOf(path, post, root) {
  const box = element("details");
  const title = element("summary");
  title.append(element("code", `POST ${path}`), element("span", `${post["x-loom-role"]}, ${post["x-loom-kind"]}`, "marks"));
  title.append(element("span", post.summary, "summary"));
  box.append(title);
  const body = post.requestBody.content["application/json"];
  box.append(element("h3", "Takes"), fieldTable(resolved(body.schema, root), root));
  box.append(element("h3", "Example"), element("pre", JSON.stringify(body.example, null, 2)));
  const answer = post.responses["200"].content["application/json"].schema;
  box.append(element("h3", "Gives"), fieldTable(resolved(answer, root), root));
  const errors = element("ul");
  for (const [status, response] of Object.entries(post.responses)) {
    if (status === "200") continue;
    const text = `${status}: ${resolved(response, root).description.replace(/\s+/g, " ")}`;
    errors.append(...prose(text, "li"));
  }
  box.append(element("h3", "Errors"), errors);
  box.dataset.words = `${path} ${post.summary}`.toLowerCase();
  return box;
}

function filter(text) {
  const wanted = text.trim().toLowerCase();
  for (const box of document.querySelectorAll("details")) box.hidden = !box.dataset.words.includes(wanted);
}

async function start() {
  const about = document.getElementById("about");
  const place = document.getElementById("operations");
  try {
    const response = await fetch("/openapi.json");
    if (!response.ok) throw new Error(`status ${response.status}`);
    const root = await response.json();
    about.replaceChildren(...prose(root.info.description));
    for (const tag of root.tags) {
      place.append(element("h2", tag.name));
      for (const [path, item] of Object.entries(root.paths)) {
        if (item.post.tags.includes(tag.name)) place.append(operationOf(path, item.post, root));
      }
    }
    document.getElementById("find").addEventListener("input", (event) => filter(event.target.value));
  } catch (error) {
    about.textContent = `The description could not be read: ${error.message}`;
    about.className = "failed";
  }
}

start();
