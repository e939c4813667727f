"use strict";
(function () {
  // Charts are drawn at the width of their box; before printing at the width of the paper (A4 less its margins).
  var PAPER_PX = 700;
  var plots = Array.prototype.slice.call(document.querySelectorAll(".plot"));
  var narrow = window.matchMedia("screen and (max-width: 760px)");

  // A long name above a bar would run into the figure at its right end.
  function shorten(note) {
    if (note.x === 0 && note.text.length > 40 && !/&/.test(note.text)) {
      var bold = note.text.slice(0, 3) === "<b>";
      var text = note.text.replace(/<[^>]*>/g, "");
      if (text.length > 36) text = text.slice(0, 35) + "…";
      note.text = bold ? "<b>" + text + "</b>" : text;
    }
  }

  function draw(box) {
    var figure = JSON.parse(document.getElementById(box.id + "-data").textContent);
    var zoom = box.dataset.zoom === "yes" && !narrow.matches;
    figure.layout.dragmode = zoom ? "zoom" : false;
    if (narrow.matches) {
      figure.layout.font.size = 12;
      if (figure.layout.margin.l > 20) figure.layout.height = 360;
      (figure.layout.annotations || []).forEach(shorten);
    }
    box.tall = figure.layout.height;
    return Plotly.newPlot(box, figure.data, figure.layout, {
      responsive: true,
      displaylogo: false,
      displayModeBar: zoom ? "hover" : false,
      modeBarButtonsToRemove: ["select2d", "lasso2d", "autoScale2d"],
      scrollZoom: false
    });
  }
  if (window.Plotly) plots.forEach(draw);

  var closed = [];
  window.addEventListener("beforeprint", function () {
    closed = Array.prototype.slice.call(document.querySelectorAll("details.print:not([open])"));
    closed.forEach(function (part) { part.open = true; });
    if (window.Plotly) plots.forEach(function (box) { Plotly.relayout(box, { width: PAPER_PX, height: Math.round(box.tall * Number(box.dataset.paper)) }); });
  });
  window.addEventListener("afterprint", function () {
    closed.forEach(function (part) { part.open = false; });
    if (window.Plotly) plots.forEach(function (box) { Plotly.relayout(box, { width: null, height: box.tall, autosize: true }); });
  });
})();
