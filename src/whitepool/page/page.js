"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);

  /* Tables: sorting, filtering, and what is behind a row. */

  const byText = new Intl.Collator(undefined, { numeric: true }).compare;

  function compare(a, b, index, sign) {
    const [x, y] = [a.cells[index], b.cells[index]];
    const [p, q] = [x.dataset.v, y.dataset.v];
    if (p !== undefined && q !== undefined) return sign * (Number(p) - Number(q));
    if (p !== undefined || q !== undefined) return p === undefined ? 1 : -1; // undefined comes last
    const [s, t] = [x.textContent, y.textContent];
    if (!s || !t) return s ? -1 : t ? 1 : 0;
    return sign * byText(s, t);
  }

  function close(body) {
    for (const row of body.querySelectorAll("tr.details")) row.remove();
    for (const button of body.querySelectorAll(".more")) {
      button.setAttribute("aria-expanded", "false");
      button.textContent = "+";
    }
  }

  function sort(table, head) {
    const numeric = head.classList.contains("n");
    const now = head.getAttribute("aria-sort");
    const first = numeric ? "descending" : "ascending";
    const other = numeric ? "ascending" : "descending";
    const next = now === first ? other : first;
    for (const th of table.tHead.rows[0].cells) {
      if (th.hasAttribute("aria-sort")) th.setAttribute("aria-sort", "none");
    }
    head.setAttribute("aria-sort", next);
    const body = table.tBodies[0];
    close(body);
    const sign = next === "ascending" ? 1 : -1;
    body.append(...[...body.rows].sort((a, b) => compare(a, b, head.cellIndex, sign)));
  }

  function element(tag, name, text) {
    const made = document.createElement(tag);
    made.className = name;
    made.textContent = text;
    return made;
  }

  function details(row) {
    const line = Number(row.dataset.line);
    const inside = element("div", "inside", "");
    const copy = element("button", "copy", "Copy");
    copy.type = "button";
    copy.addEventListener("click", async () => {
      await navigator.clipboard.writeText(data.commands[line]);
      copy.textContent = "Copied";
    });
    inside.append("Command ", copy, element("pre", "command", data.commands[line]));
    const config = data.configs[data.places[line]];
    if (config) inside.append("Configuration", element("pre", "config", config));
    const made = element("tr", "details", "");
    const cell = made.insertCell();
    cell.colSpan = row.cells.length;
    cell.append(inside);
    return made;
  }

  function toggle(button) {
    const row = button.closest("tr");
    const open = button.getAttribute("aria-expanded") === "true";
    if (open) row.nextElementSibling.remove();
    else row.after(details(row));
    button.setAttribute("aria-expanded", String(!open));
    button.textContent = open ? "+" : "\u2212";
  }

  for (const block of document.querySelectorAll("[data-table]")) {
    const table = block.querySelector("table");
    const body = table.tBodies[0];
    const input = block.querySelector("input");
    const output = block.querySelector("output");
    const rows = [...body.rows];
    const texts = rows.map((row) => row.textContent.toLowerCase());
    const choices = [];

    const filter = () => {
      close(body);
      const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
      let shown = 0;
      rows.forEach((row, i) => {
        const fits =
          words.every((word) => texts[i].includes(word)) &&
          choices.every(({ select, index }) =>
            select.value === "" || row.cells[index].textContent === select.value);
        row.hidden = !fits;
        shown += fits;
      });
      output.textContent = `${shown.toLocaleString("en")} of ${rows.length.toLocaleString("en")} rows`;
    };

    for (const head of table.tHead.querySelectorAll("th")) {
      head.firstElementChild.addEventListener("click", () => sort(table, head));
      if (head.classList.contains("n")) continue;
      const values = [...new Set(rows.map((row) => row.cells[head.cellIndex].textContent))];
      if (values.length < 2 || values.length > 12 || values.length === rows.length) continue;
      const select = document.createElement("select");
      select.append(new Option("all", ""), ...values.sort(byText).map((v) => new Option(v, v)));
      select.addEventListener("change", filter);
      const label = element("label", "", `${head.textContent} `);
      label.append(select);
      output.before(label);
      choices.push({ select, index: head.cellIndex });
    }
    input.addEventListener("input", filter);
    body.addEventListener("click", (event) => {
      const button = event.target.closest(".more");
      if (button) toggle(button);
    });
    filter();
  }

  /* Charts: plotly is unpacked once the page stands. */

  const dark = window.matchMedia("(prefers-color-scheme: dark)");

  function themed(view) {
    const style = getComputedStyle(document.documentElement);
    const [ink, line] = [style.getPropertyValue("--ink"), style.getPropertyValue("--line")];
    const axis = { gridcolor: line, zerolinecolor: line, linecolor: line };
    const layout = {
      margin: { l: 60, r: 20, t: 20, b: 50 },
      legend: { orientation: "h", y: 1.02, yanchor: "bottom" },
      font: { color: ink },
      paper_bgcolor: "rgba(0,0,0,0)",
      plot_bgcolor: "rgba(0,0,0,0)",
      ...view.layout,
    };
    for (const name of ["xaxis", "yaxis"]) layout[name] = { ...axis, ...layout[name] };
    const traces = view.data.map((trace) =>
      trace.name === "published"
        ? { ...trace, marker: { ...trace.marker, line: { ...trace.marker.line, color: ink } } }
        : { ...trace });
    return [traces, layout];
  }

  async function unpack() {
    const packed = atob(document.getElementById("plotly").textContent.trim());
    const bytes = Uint8Array.from(packed, (letter) => letter.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    const script = document.createElement("script");
    script.textContent = await new Response(stream).text();
    document.head.append(script);
  }

  async function draw() {
    const figures = [...document.querySelectorAll("[data-chart]")];
    if (!figures.length) return;
    if (!("DecompressionStream" in window)) {
      for (const f of figures) f.querySelector(".plot").textContent = "This browser is too old for charts.";
      return;
    }
    await unpack();
    const config = {
      displaylogo: false, responsive: true, plotlyServerURL: "", showSendToCloud: false,
      modeBarButtonsToRemove: ["sendChartToCloud", "sendDataToCloud"],  // this page goes nowhere
    };
    const show = (figure) => {
      const select = figure.querySelector("select");
      const view = data.charts[figure.dataset.chart].views[select ? select.value : 0];
      return window.Plotly.react(figure.querySelector(".plot"), ...themed(view), config);
    };
    for (const figure of figures) {
      figure.querySelector("select")?.addEventListener("change", () => show(figure));
    }
    const seen = new IntersectionObserver((entries) => {
      for (const entry of entries) {
        if (!entry.isIntersecting) continue;
        seen.unobserve(entry.target);
        entry.target.classList.add("drawn");
        show(entry.target);
      }
    }, { rootMargin: "400px" });
    figures.forEach((figure) => seen.observe(figure));
    dark.addEventListener("change", () =>
      figures.filter((figure) => figure.classList.contains("drawn")).forEach(show));
  }

  requestAnimationFrame(() => setTimeout(draw));
})();
