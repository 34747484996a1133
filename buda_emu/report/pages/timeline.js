'use strict';
// A .timeline: its picture, and how one moves in it. Only what is in view is drawn.
const timeline = root => {
  const {AXIS, LANE, GAP} = TIMELINE, TICK = 1.25;  // of the wheel: the most that it zooms
  const at = name => root.querySelector('.' + name);
  const model = timelineModel(JSON.parse(at('tl-data').textContent)), rows = timelineRows(model);
  const {data, words, laneOf, startOf, lengthOf, nameOf, inLane, first, last, whole, least, inChain} = model;
  const {layout, laneNames} = rows;
  const box = at('tl-view'), canvas = at('tl-canvas'), tip = at('tl-tip');
  const view = {
    width: 0, height: 0, label: 0, from: first, to: last, scroll: 0, chosen: -1, hovered: null, arrows: 'path',
    wanted: null, wantedLanes: new Set(),  // words and lanes that the search found
    marked: null, near: null,  // the lane that is chosen from outside, and those beside it
    x: time => view.label + (time - view.from) / (view.to - view.from) * (view.width - view.label),
    time: px => view.from + (px - view.label) / (view.width - view.label) * (view.to - view.from),
    // something is at work in a window in the rows that are shown
    hasContent: (from = view.from, to = view.to) => layout.rows.some(row => {
      const top = row.top - view.scroll;
      if (top + row.height < AXIS || top > view.height) return false;
      if (row.kind === 'lane') return model.isBusy(row.index, from, to);
      return row.kind !== 'head' || (layout.folded.has(row.key) && row.lanes.some(lane => model.isBusy(lane, from, to)));
    }),
  };
  const g = canvas.getContext('2d'), {draw, scheme, legend, colours} = timelineDrawing(model, rows, view, g);
  const {under, describe, laneAt} = timelinePointed(model, rows, view);

  const resize = () => {
    view.width = box.clientWidth;
    view.height = Math.min(layout.bottom + GAP, Math.max(240, Math.round(innerHeight * 0.72)));
    view.label = Math.round(Math.min(view.width > 1500 ? 400 : view.width > 1100 ? 270 : 190, view.width * 0.28));
    const scale = devicePixelRatio || 1;
    canvas.width = view.width * scale;
    canvas.height = view.height * scale;
    canvas.style.width = view.width + 'px';
    canvas.style.height = view.height + 'px';
    g.setTransform(scale, 0, 0, scale, 0, 0);
    overview.resize();
    clamp();
  };
  const clamp = () => {
    const span = Math.min(Math.max(view.to - view.from, least), whole * 1.02);
    view.from = Math.min(Math.max(view.from, first - whole * 0.01), last + whole * 0.01 - span);
    view.to = view.from + span;
    view.scroll = Math.min(Math.max(view.scroll, 0), Math.max(layout.bottom + GAP - view.height, 0));
  };
  let waiting = false;
  const redraw = () => {
    if (!waiting) { waiting = true; requestAnimationFrame(() => { waiting = false; draw(); overview.draw(colours(), hits()); }); }
  };
  const overview = timelineOverview(model, view, at('tl-overview'), from => {
    const span = view.to - view.from;
    view.from = from;
    view.to = from + span;
    clamp();
    redraw();
  });

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
    const share = (centre - view.from) / (view.to - view.from), from = centre - span * share;
    if (factor < 1 && view.hasContent() && !view.hasContent(from, from + span)) return;  // nothing would be left to see
    view.from = from;
    view.to = from + span;
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
      if (what && what.label && what.label.kind === 'head') return refold(() => rows.fold(what.label.key));
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
    if (event.ctrlKey || event.metaKey) {
      const ticks = event.deltaY * (event.deltaMode ? 0.05 : 0.002);  // lines or pixels
      zoom(Math.min(Math.max(Math.exp(ticks), 1 / TICK), TICK), event.clientX - edge.left);
    }
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
  const refold = change => {  // and leave the height to what is shown now
    change();
    tell(null);
    resize();
    redraw();
  };
  at('tl-in').onclick = () => zoom(1 / 1.5, middle());
  at('tl-out').onclick = () => zoom(1.5, middle());
  at('tl-fit').onclick = all;
  at('tl-arrows').onchange = event => { view.arrows = event.target.value; redraw(); };
  at('tl-order').onchange = event => { layout.busiestFirst = event.target.value === 'busy'; refold(rows.place); };
  at('tl-order').value = layout.busiestFirst ? 'busy' : 'given';
  at('tl-fold').onclick = () => refold(() => { rows.foldAll(); view.scroll = 0; });
  at('tl-unfold').onclick = () => refold(() => { rows.unfoldAll(); view.scroll = 0; });
  at('tl-fold').hidden = at('tl-unfold').hidden = !rows.headKeys().length;
  box.addEventListener('keydown', event => {
    const shift = (view.to - view.from) * 0.15, keys = {
      '+': () => zoom(1 / TICK, middle()), '=': () => zoom(1 / TICK, middle()), '-': () => zoom(TICK, middle()), '0': all, f: all,
      ArrowLeft: () => { view.from -= shift; view.to -= shift; }, ArrowRight: () => { view.from += shift; view.to += shift; },
      ArrowUp: () => { view.scroll -= 60; }, ArrowDown: () => { view.scroll += 60; }, Escape: () => { view.chosen = -1; tell(null); },
    };
    if (!keys[event.key]) return;
    keys[event.key]();
    clamp();
    redraw();
    event.preventDefault();
  });

  const bringLane = lane => {
    if (!layout.isShown[lane]) rows.reveal(lane);
    resize();
    view.scroll = layout.laneTop[lane] - view.height / 2;
  };
  const showLane = lane => {
    view.marked = lane;
    bringLane(lane);
    clamp();
    if (inLane[lane].length && !model.isBusy(lane, view.from, view.to)) { view.from = first; view.to = last; }
    redraw();
  };
  const showSlice = slice => {
    view.chosen = slice;
    const span = Math.min(view.to - view.from, Math.max(lengthOf[slice] * 20, least)), centre = startOf[slice] + lengthOf[slice] / 2;
    bringLane(laneOf[slice]);
    view.from = centre - span / 2;
    view.to = centre + span / 2;
    clamp();
    redraw();
  };
  const {hits} = timelineSearch(at, model, rows, view, {showLane, showSlice, redraw: () => { resize(); redraw(); }});

  // What the page chose: its lane is marked and brought into view, others but its neighbours' step back.
  root.mark = (name, neighbours) => {
    const index = laneNames.indexOf(name);
    const beside = lane => lane === name || neighbours.has(lane) || lane.split(' > ').includes(name);
    view.marked = index < 0 ? null : index;
    view.near = name ? new Set(laneNames.flatMap((lane, i) => beside(lane) ? [i] : [])) : null;
    if (view.near && !view.near.size) view.near = null;
    const top = view.marked === null ? AXIS : layout.laneTop[view.marked] - view.scroll;
    if (top < AXIS || top > view.height - LANE) bringLane(view.marked);
    clamp();
    redraw();
  };
  root.shown = () => ({
    from: view.from, to: view.to, least, whole, scroll: view.scroll, marked: view.marked, hasContent: view.hasContent(), lanes: laneNames,
    rows: layout.rows.map(row => row.kind === 'head' ? {head: row.title, folded: layout.folded.has(row.key), top: row.top - view.scroll}
      : {lane: laneNames[row.index], top: row.top - view.scroll}),
    slices: inLane.map(lane => lane.map(i => ({
      name: words[nameOf[i]], start: startOf[i], end: startOf[i] + lengthOf[i], chain: inChain.has(i),
    }))),
  });

  const start = () => { scheme(); legend(at('tl-legend')); resize(); redraw(); };
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', start);
  new ResizeObserver(() => { resize(); redraw(); }).observe(box);
  start();
};
