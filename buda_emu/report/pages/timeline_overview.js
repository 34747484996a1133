'use strict';
// The strip above a timeline: all of its time, how many lanes are at work, the critical path, what the search found,
// and the window that is shown below. A press or a drag moves the window.
const timelineOverview = (model, view, canvas, move) => {
  const {data, startOf, first, last, whole, density, moment} = model;
  const HEIGHT = 40, LEAST = 8;  // pixels of the strip, and of the window in it
  const g = canvas.getContext('2d'), lanes = data.lanes.map((_, lane) => lane);
  let width = 0, bins = [];

  const place = time => (time - first) / whole * width;
  const resize = () => {
    const scale = devicePixelRatio || 1;
    width = Math.max(view.width, 1);
    canvas.width = width * scale;
    canvas.height = HEIGHT * scale;
    canvas.style.width = width + 'px';
    canvas.style.height = HEIGHT + 'px';
    g.setTransform(scale, 0, 0, scale, 0, 0);
    bins = density(lanes, first, last, Math.floor(width));
  };
  const windowAt = () => {
    const left = place(view.from), size = Math.max(place(view.to) - left, LEAST);
    return [Math.min(Math.max(left, 0), width - size), Math.min(size, width)];
  };
  const mark = (slices, colour, top, height) => {
    g.fillStyle = colour;
    for (const slice of slices) g.fillRect(place(startOf[slice]), top, 1, height);
  };
  const draw = ({panel, line, ink, bad, bar}, hits) => {
    const most = bins.reduce((a, b) => Math.max(a, b), 0) || 1, [left, size] = windowAt();
    g.fillStyle = panel;
    g.fillRect(0, 0, width, HEIGHT);
    g.fillStyle = bar;
    bins.forEach((value, i) => {
      const tall = value ? Math.max((HEIGHT - 10) * value / most, 1) : 0;
      g.fillRect(i, HEIGHT - 6 - tall, 1, tall);
    });
    mark(data.chain, bad, HEIGHT - 5, 4);
    mark(hits, ink, 0, 5);
    g.globalAlpha = 0.6;
    g.fillStyle = line;
    g.fillRect(0, 0, left, HEIGHT);
    g.fillRect(left + size, 0, width - left - size, HEIGHT);
    g.globalAlpha = 1;
    g.strokeStyle = ink;
    g.lineWidth = 1.5;
    g.strokeRect(left + 0.75, 0.75, Math.max(size - 1.5, 1), HEIGHT - 1.5);
    canvas.setAttribute('aria-label', `overview; shown: ${moment(view.from)} to ${moment(view.to)} of ${moment(last)}`);
  };
  let grip = null;  // where in the window it is held
  const drag = event => {
    const at = first + (event.clientX - canvas.getBoundingClientRect().left) / width * whole;
    if (grip === null) grip = at >= view.from && at <= view.to ? at - view.from : (view.to - view.from) / 2;
    move(at - grip);
  };
  canvas.addEventListener('pointerdown', event => { canvas.setPointerCapture(event.pointerId); grip = null; drag(event); });
  canvas.addEventListener('pointermove', event => { if (event.buttons) drag(event); });
  return {resize, draw};
};
