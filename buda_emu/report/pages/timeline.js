'use strict';
// A .timeline: its picture, and how one moves in it. Only what is in view is drawn.
const timeline = root => {
  const {AXIS, LANE, GAP} = TIMELINE;
  const at = name => root.querySelector('.' + name);
  const model = timelineModel(JSON.parse(at('tl-data').textContent));
  const {data, words, laneOf, startOf, lengthOf, nameOf, bottom, laneTop, inLane, first, last, whole, inChain} = model;
  const box = at('tl-view'), canvas = at('tl-canvas'), tip = at('tl-tip'), search = at('tl-search');
  const view = {
    width: 0, height: 0, label: 0, from: first, to: last, scroll: 0, chosen: -1, hovered: null, wanted: null, allFlows: false,
    marked: null, near: null,  // the lane that is chosen from outside, and those beside it
    x: time => view.label + (time - view.from) / (view.to - view.from) * (view.width - view.label),
    time: px => view.from + (px - view.label) / (view.width - view.label) * (view.to - view.from),
  };
  const g = canvas.getContext('2d'), {draw, scheme, legend} = timelineDrawing(model, view, g);
  const {under, describe, laneAt} = timelinePointed(model, view);
  const least = Math.max(whole / 1e7, 1e-6);
  let next = -1;

  const resize = () => {
    view.width = box.clientWidth;
    view.height = Math.min(bottom + GAP, Math.max(240, Math.round(innerHeight * 0.72)));
    view.label = Math.round(Math.min(view.width > 1100 ? 270 : 190, view.width * 0.28));
    const scale = devicePixelRatio || 1;
    canvas.width = view.width * scale;
    canvas.height = view.height * scale;
    canvas.style.width = view.width + 'px';
    canvas.style.height = view.height + 'px';
    g.setTransform(scale, 0, 0, scale, 0, 0);
    clamp();
  };
  const clamp = () => {
    const span = Math.min(Math.max(view.to - view.from, least), whole * 1.02);
    view.from = Math.min(Math.max(view.from, first - whole * 0.01), last + whole * 0.01 - span);
    view.to = view.from + span;
    view.scroll = Math.min(Math.max(view.scroll, 0), Math.max(bottom + GAP - view.height, 0));
  };
  let waiting = false;
  const redraw = () => {
    if (!waiting) { waiting = true; requestAnimationFrame(() => { waiting = false; draw(); }); }
  };

  const tell = (what, px, py) => {
    view.hovered = what;
    tip.hidden = !what;
    if (what) {
      tip.textContent = describe(what);
      tip.style.left = Math.max(0, Math.min(px + 14, view.width - tip.offsetWidth - 4)) + 'px';
      tip.style.top = Math.max(0, py + 18 + tip.offsetHeight > view.height ? py - tip.offsetHeight - 10 : py + 18) + 'px';
    }
    redraw();
  };

  // Pointers: one drags, two zoom.
  const zoom = (factor, px) => {
    const centre = view.time(Math.max(px, view.label)), span = Math.min(Math.max((view.to - view.from) * factor, least), whole * 1.02);
    const share = (centre - view.from) / (view.to - view.from);
    view.from = centre - span * share;
    view.to = view.from + span;
    clamp();
    redraw();
  };
  const pointers = new Map();
  let moved = 0;
  canvas.addEventListener('pointerdown', event => {
    pointers.set(event.pointerId, event);
    canvas.setPointerCapture(event.pointerId);
    moved = 0;
  });
  canvas.addEventListener('pointermove', event => {
    const edge = canvas.getBoundingClientRect(), before = pointers.get(event.pointerId);
    if (!before) return tell(under(event.clientX - edge.left, event.clientY - edge.top), event.clientX - edge.left, event.clientY - edge.top);
    const others = [...pointers.values()].filter(other => other.pointerId !== event.pointerId);
    if (others.length) {
      const spread = (a, b) => Math.max(Math.abs(a.clientX - b.clientX), 8);
      zoom(spread(before, others[0]) / spread(event, others[0]), (event.clientX + others[0].clientX) / 2 - edge.left);
    }
    const shift = (event.clientX - before.clientX) / (view.width - view.label) * (view.to - view.from) / (others.length + 1);
    view.from -= shift;
    view.to -= shift;
    view.scroll -= event.clientY - before.clientY;
    moved += Math.abs(event.clientX - before.clientX) + Math.abs(event.clientY - before.clientY);
    pointers.set(event.pointerId, event);
    clamp();
    redraw();
  });
  const lift = event => {
    if (pointers.delete(event.pointerId) && moved < 4 && event.type === 'pointerup') {
      const edge = canvas.getBoundingClientRect(), px = event.clientX - edge.left, py = event.clientY - edge.top;
      const what = under(px, py);
      view.chosen = what && what.slice >= 0 && what.slice !== view.chosen ? what.slice : -1;
      tell(what, px, py);
      const name = what && what.slice >= 0 ? words[data.lanes[laneOf[what.slice]][0]] : px < view.label ? laneAt(py) : '';
      if (name) root.dispatchEvent(new CustomEvent('chosen', {bubbles: true, detail: name}));
    }
  };
  canvas.addEventListener('pointerup', lift);
  canvas.addEventListener('pointercancel', lift);
  canvas.addEventListener('pointerleave', () => { if (!pointers.size) tell(null); });
  canvas.addEventListener('wheel', event => {
    const edge = canvas.getBoundingClientRect();
    if (event.ctrlKey || event.metaKey) zoom(Math.exp(event.deltaY * 0.004), event.clientX - edge.left);
    else {
      const shift = (event.deltaX + (event.shiftKey ? event.deltaY : 0)) / (view.width - view.label) * (view.to - view.from), old = view.scroll;
      view.from += shift;
      view.to += shift;
      if (!event.shiftKey) view.scroll += event.deltaY;
      clamp();
      if (view.scroll === old && !shift) return;  // at its end the page scrolls on
      redraw();
    }
    event.preventDefault();
  }, {passive: false});
  const middle = () => view.label + (view.width - view.label) / 2;
  const all = () => { view.from = first; view.to = last; view.scroll = 0; clamp(); redraw(); };
  at('tl-in').onclick = () => zoom(0.5, middle());
  at('tl-out').onclick = () => zoom(2, middle());
  at('tl-fit').onclick = all;
  at('tl-flows').onchange = event => { view.allFlows = event.target.checked; redraw(); };
  box.addEventListener('keydown', event => {
    const shift = (view.to - view.from) * 0.15, keys = {
      '+': () => zoom(0.7, middle()), '=': () => zoom(0.7, middle()), '-': () => zoom(1.4, middle()), '0': all,
      ArrowLeft: () => { view.from -= shift; view.to -= shift; }, ArrowRight: () => { view.from += shift; view.to += shift; },
      ArrowUp: () => { view.scroll -= 60; }, ArrowDown: () => { view.scroll += 60; }, Escape: () => { view.chosen = -1; tell(null); },
    };
    if (!keys[event.key]) return;
    keys[event.key]();
    clamp();
    redraw();
    event.preventDefault();
  });

  // Search: texts that contain the words; Enter goes from one to the next.
  let hits = [];
  search.addEventListener('input', () => {
    const text = search.value.trim().toLowerCase();
    view.wanted = text ? new Set(words.flatMap((word, i) => word.toLowerCase().includes(text) ? [i] : [])) : null;
    hits = [];
    next = -1;
    if (view.wanted)
      for (let i = 0; i < laneOf.length; i++)
        if (model.isFound(view.wanted, i)) hits.push(i);
    hits.sort((a, b) => startOf[a] - startOf[b]);
    at('tl-found').textContent = view.wanted ? `${hits.length.toLocaleString('en')} found` : '';
    redraw();
  });
  search.addEventListener('keydown', event => {
    if (event.key !== 'Enter' || !hits.length) return;
    next = (next + (event.shiftKey ? hits.length - 1 : 1)) % hits.length;
    view.chosen = hits[next];
    const span = Math.min(view.to - view.from, Math.max(lengthOf[view.chosen] * 20, least)), centre = startOf[view.chosen] + lengthOf[view.chosen] / 2;
    view.from = centre - span / 2;
    view.to = centre + span / 2;
    view.scroll = laneTop[laneOf[view.chosen]] - view.height / 2;
    clamp();
    at('tl-found').textContent = `${(next + 1).toLocaleString('en')} of ${hits.length.toLocaleString('en')}: ${words[nameOf[view.chosen]]}`;
    redraw();
  });

  // What the page chose: its lane is marked and brought into view, others but its neighbours' step back.
  root.mark = (name, neighbours) => {
    const index = data.lanes.findIndex(lane => words[lane[0]] === name);
    const beside = lane => lane === name || neighbours.has(lane) || lane.split(' > ').includes(name);
    view.marked = index < 0 ? null : index;
    view.near = name ? new Set(data.lanes.flatMap((lane, i) => beside(words[lane[0]]) ? [i] : [])) : null;
    if (view.near && !view.near.size) view.near = null;
    if (view.marked !== null && (laneTop[view.marked] - view.scroll < AXIS || laneTop[view.marked] - view.scroll > view.height - LANE))
      view.scroll = laneTop[view.marked] - view.height / 2;
    clamp();
    redraw();
  };
  root.shown = () => ({from: view.from, to: view.to, lanes: data.lanes.map(lane => words[lane[0]]), slices: inLane.map(lane => lane.map(i => ({
    name: words[nameOf[i]], start: startOf[i], end: startOf[i] + lengthOf[i], chain: inChain.has(i),
  })))});

  const start = () => { scheme(); legend(at('tl-legend')); resize(); redraw(); };
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', start);
  new ResizeObserver(() => { resize(); redraw(); }).observe(box);
  start();
};
