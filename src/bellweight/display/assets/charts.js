"use strict";
(() => {
  const root = document.documentElement;
  const specs = JSON.parse(document.getElementById("charts").textContent);
  const places = [...document.querySelectorAll("[data-chart]")];
  const spoken = document.getElementById("spoken");
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const PAPER = 640; // pixels that a chart may take on paper
  const LOW = 300; // pixels that a chart may be high there, unless names need their room
  const MANY = 6; // names below a chart
  const MORE = 80; // pixels that turned names take
  const NARROW = 500; // pixels below which names beside a chart are broken into short lines

  const colour = (name) => getComputedStyle(root).getPropertyValue(name).trim();

  const isDark = () =>
    !printing && (root.dataset.theme ? root.dataset.theme === "dark" : dark.matches);
  let printing = false;

  // Dark blue is hard to see on a dark ground.
  const data = (spec) =>
    isDark() ? JSON.parse(JSON.stringify(spec.data).replaceAll("#0072B2", "#4AA3E0")) : spec.data;

  // Many names below a narrow chart, or on paper, are turned: each takes one line. The chart is higher.
  const isTurned = (spec, place) =>
    (printing || place.clientWidth < NARROW) && spec.layout.xaxis.ticktext?.length > MANY;

  const turned = (axis) => ({
    ...axis, tickangle: 90,
    ticktext: axis.ticktext.map((name) => name.replaceAll("<br>", "\u00a0")),
  });

  function height(spec, place) {
    const usual = Number(place.dataset.height);
    if (isTurned(spec, place)) return usual + MORE;
    const named = spec.wide || spec.layout.xaxis.tickangle;
    return printing && !named ? Math.min(usual, LOW) : usual;
  }

  function layout(spec, place) {
    const ink = colour("--ink"), line = colour("--line");
    const axis = (given) => ({
      gridcolor: line, zerolinecolor: line, linecolor: line, tickcolor: line, ...given,
    });
    return {
      ...spec.layout,
      paper_bgcolor: "rgba(0,0,0,0)",
      plot_bgcolor: "rgba(0,0,0,0)",
      font: { color: ink, size: 13, family: "system-ui, sans-serif" },
      margin: { l: place.clientWidth < NARROW ? 55 : 75, r: 20, t: 10, b: 50 },
      height: height(spec, place),
      hoverlabel: { bgcolor: colour("--panel"), bordercolor: line, font: { color: ink } },
      modebar: { bgcolor: colour("--panel"), color: colour("--soft"), activecolor: ink },
      ...(printing ? { width: PAPER } : {}),
      xaxis: axis(isTurned(spec, place) ? turned(spec.layout.xaxis) : spec.layout.xaxis),
      yaxis: axis(place.clientWidth < NARROW || !spec.wide ? spec.layout.yaxis
        : { ...spec.layout.yaxis, ticktext: spec.wide }),
    };
  }

  const settings = { responsive: true, displaylogo: false, modeBarButtonsToRemove: ["toImage", "select2d", "lasso2d"] };

  function draw(place) {
    const spec = specs[Number(place.dataset.chart)];
    return Plotly.react(place, data(spec), layout(spec, place), settings).then(() => {
      place.dataset.drawn = "true";
      root.dataset.interactiveAfter ??= String(Math.round(performance.now()));
    });
  }

  function drawAll() {
    let work = Promise.resolve();
    for (const place of places) {
      // A pause between two charts keeps the page answering while they are drawn.
      work = work.then(() => new Promise((go) => setTimeout(go, 0))).then(() => draw(place));
    }
    return work.then(() => {
      root.dataset.ready = "true";
    });
  }

  function step(place, event) {
    const keys = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowDown: [0, 1], ArrowUp: [0, -1] };
    const move = keys[event.key];
    if (!move || !place.data) return;
    event.preventDefault();
    const at = place.at || { curve: 0, point: -1, row: 0 };
    place.at = at;
    const first = place.data[0];
    if (first.type === "heatmap") {
      at.point = clamp(at.point + move[0], first.x.length);
      at.row = clamp(at.row - move[1], first.y.length);
      Plotly.Fx.hover(place, [{ curveNumber: 0, xval: first.x[at.point], yval: first.y[at.row] }]);
    } else {
      at.curve = clamp(at.curve + move[1], place.data.length);
      const line = place.data[at.curve];
      // Gaps in a line have no number to tell: the next one that has is taken.
      let next = clamp(at.point + move[0], line.x.length);
      while (line.x[next] === null && line.x[next + (move[0] || 1)] !== undefined) {
        next += move[0] || 1;
      }
      if (line.x[next] !== null) at.point = next;
      Plotly.Fx.hover(place, [{ curveNumber: at.curve, pointNumber: at.point }]);
    }
    // Plotly puts off labels that follow each other quickly, and tells nobody when they are shown.
    setTimeout(() => speak(place), 100);
  }

  function speak(place) {
    const lines = place.querySelectorAll(".hoverlayer tspan.line");
    spoken.textContent = [...lines].map((line) => line.textContent).join(": ");
  }

  const clamp = (value, length) => Math.max(0, Math.min(value, length - 1));

  for (const place of places) {
    place.addEventListener("keydown", (event) => step(place, event));
    place.addEventListener("blur", () => place.data && Plotly.Fx.unhover(place));
  }
  document.getElementById("theme").addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    drawAll();
  });
  dark.addEventListener("change", drawAll);

  // Choosing a line in the key hides it, or shows it again.
  for (const button of document.querySelectorAll(".key button")) {
    button.addEventListener("click", () => {
      const hidden = button.getAttribute("aria-pressed") === "true";
      button.setAttribute("aria-pressed", String(!hidden));
      const place = button.closest("figure").querySelector("[data-chart]");
      Plotly.restyle(place, { visible: !hidden }, [Number(button.dataset.line)]);
    });
  }

  // Paper is white and narrow, whatever the screen is.
  window.addEventListener("beforeprint", () => {
    printing = true;
    places.forEach(draw);
  });
  window.addEventListener("afterprint", () => {
    printing = false;
    drawAll();
  });
  drawAll();
})();
