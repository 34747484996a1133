'use strict';
// Draws the picture that a .timeline holds: lanes, counters and memories over time. Only what is in view is drawn.
const timeline = root => {
  const at = name => root.querySelector('.' + name);
  const data = JSON.parse(at('tl-data').textContent);
  const words = data.words, [laneOf, startOf, lengthOf, nameOf, categoryOf, detailOf] = data.slices;
  const view = at('tl-view'), canvas = at('tl-canvas'), tip = at('tl-tip'), search = at('tl-search');
  const g = canvas.getContext('2d');
  const AXIS = 26, LANE = 18, HEAD = 20, COUNTER = 44, MEMORY = 150, GAP = 6;

  // What stands where: rows from top to bottom, in the order of their groups.
  const rows = [];
  let bottom = AXIS;
  const add = (kind, height, index) => { rows.push({kind, index, top: bottom, height}); bottom += height; };
  const groups = new Map();
  const into = (map, key, value) => { if (map.has(key)) map.get(key).push(value); else map.set(key, [value]); };
  data.lanes.forEach((lane, i) => into(groups, lane[1], i));
  for (const [group, lanes] of groups) {
    if (words[group]) add('head', HEAD, group);
    for (const lane of lanes) add('lane', LANE, lane);
  }
  data.counters.forEach((_, i) => add('counter', COUNTER, i));
  data.memories.forEach((_, i) => add('memory', MEMORY, i));
  const laneTop = new Float64Array(data.lanes.length);
  for (const row of rows) if (row.kind === 'lane') laneTop[row.index] = row.top;

  // Slices of each lane by start; a lane's slices do not overlap, so their ends are in order, too.
  const inLane = data.lanes.map(() => []);
  let first = Infinity, last = 0;
  for (let i = 0; i < laneOf.length; i++) {
    inLane[laneOf[i]].push(i);
    first = Math.min(first, startOf[i]);
    last = Math.max(last, startOf[i] + lengthOf[i]);
  }
  for (const lane of inLane) lane.sort((a, b) => startOf[a] - startOf[b] || lengthOf[a] - lengthOf[b]);
  for (const [, , times] of data.counters) for (const t of times) last = Math.max(last, t);
  for (const memory of data.memories) for (const tensor of memory[2]) last = Math.max(last, tensor[1]);
  if (data.counters.length || data.memories.length || !(first < Infinity)) first = 0;
  last = Math.max(last, first + 1e-6);
  const whole = last - first, inChain = new Set(data.chain);
  const arrows = new Map();
  data.flows.forEach((flow, i) => { into(arrows, flow[0], i); if (flow[1] !== flow[0]) into(arrows, flow[1], i); });

  // Colours: a category keeps its own in both schemes; without categories names take their place.
  const totals = new Map();
  for (let i = 0; i < laneOf.length; i++) totals.set(categoryOf[i], (totals.get(categoryOf[i]) || 0) + lengthOf[i]);
  const ranks = new Map([...totals.keys()].sort((a, b) => totals.get(b) - totals.get(a)).map((key, i) => [key, i]));
  const dark = matchMedia('(prefers-color-scheme: dark)');
  const colour = rank => colours[rank % 10];
  let ink, soft, line, panel, bad, colours;
  const scheme = () => {
    const style = getComputedStyle(document.documentElement), of = name => style.getPropertyValue(name).trim();
    [ink, soft, line, panel, bad] = ['--ink', '--soft', '--line', '--panel', '--bad'].map(of);
    colours = Array.from({length: 10}, (_, i) => of('--k' + i));
  };
  const legend = () => {
    const box = at('tl-legend');
    box.textContent = '';
    for (const [key, rank] of ranks) {
      if (!words[key] || rank >= 10) continue;
      const item = document.createElement('span'), spot = document.createElement('i');
      spot.style.background = colour(rank);
      item.append(spot, `${words[key]} ${format(totals.get(key))}`);
      box.append(item);
    }
    if (!inChain.size) return;
    const item = document.createElement('span'), spot = document.createElement('i');
    spot.className = 'chain';
    item.append(spot, 'critical path');
    box.append(item);
  };

  const format = value => (Math.round(value * 1000) / 1000).toLocaleString('en');
  const moment = value => `${format(value)} ${data.unit}`;
  let width = 0, height = 0, label = 0, from = first, to = last, scroll = 0, chosen = -1, hovered = null, wanted = null, next = -1;
  let marked = null, near = null;  // the lane that is chosen from outside, and those beside it
  const least = Math.max(whole / 1e7, 1e-6);
  const x = time => label + (time - from) / (to - from) * (width - label);
  const time = px => from + (px - label) / (width - label) * (to - from);

  const resize = () => {
    width = view.clientWidth;
    height = Math.min(bottom + GAP, Math.max(240, Math.round(innerHeight * 0.72)));
    label = Math.round(Math.min(width > 1100 ? 270 : 190, width * 0.28));
    const scale = devicePixelRatio || 1;
    canvas.width = width * scale;
    canvas.height = height * scale;
    canvas.style.width = width + 'px';
    canvas.style.height = height + 'px';
    g.setTransform(scale, 0, 0, scale, 0, 0);
    clamp();
  };
  const clamp = () => {
    const span = Math.min(Math.max(to - from, least), whole * 1.02);
    from = Math.min(Math.max(from, first - whole * 0.01), last + whole * 0.01 - span);
    to = from + span;
    scroll = Math.min(Math.max(scroll, 0), Math.max(bottom + GAP - height, 0));
  };
  let waiting = false;
  const redraw = () => {
    if (!waiting) { waiting = true; requestAnimationFrame(() => { waiting = false; draw(); }); }
  };
  const fit = (text, room) => {
    if (g.measureText(text).width <= room) return text;
    let most = Math.floor(room / 6.2) - 1;
    while (most > 1) {
      const short = text.slice(0, Math.ceil(most / 2)) + '…' + text.slice(text.length - Math.floor(most / 2));
      if (g.measureText(short).width <= room) return short;
      most--;
    }
    return '';
  };
  const firstIn = (lane, when) => {  // the first slice that ends at or after a time
    let low = 0, high = lane.length;
    while (low < high) {
      const middle = (low + high) >> 1, i = lane[middle];
      if (startOf[i] + lengthOf[i] < when) low = middle + 1; else high = middle;
    }
    return low;
  };

  const draw = () => {
    g.fillStyle = panel;
    g.fillRect(0, 0, width, height);
    g.textBaseline = 'middle';
    g.font = '11px system-ui, sans-serif';
    drawStretches();
    for (const row of rows) {
      const top = row.top - scroll;
      if (top + row.height < AXIS || top > height) continue;
      g.save();
      g.beginPath();
      g.rect(label, Math.max(top, AXIS), width - label, row.height);
      g.clip();
      if (row.kind === 'lane') drawLane(row, top);
      if (row.kind === 'counter') drawCounter(row, top);
      if (row.kind === 'memory') drawMemory(row, top);
      g.restore();
    }
    drawArrows();
    drawLabels();
    drawAxis();
  };
  const drawStretches = () => {
    for (const [start, end] of data.stretches) {
      const left = Math.max(x(start), label), right = Math.min(x(end), width);
      if (start <= first && end >= last) continue;  // all of it
      g.globalAlpha = 0.25;
      g.fillStyle = line;
      if (right > left) g.fillRect(left, AXIS, right - left, height);
      g.globalAlpha = 1;
    }
  };
  const drawLane = (row, top) => {
    const aside = near && !near.has(row.index);
    g.fillStyle = line;
    g.fillRect(label, top + LANE - 1, width - label, 0.5);
    const lane = inLane[row.index];
    let drawn = -1;
    for (let k = firstIn(lane, from); k < lane.length; k++) {
      const i = lane[k];
      if (startOf[i] > to) break;
      const left = x(startOf[i]), right = Math.max(x(startOf[i] + lengthOf[i]), left + 1);
      const kept = i === chosen || (hovered && hovered.slice === i);
      const found = wanted && (wanted.has(nameOf[i]) || wanted.has(categoryOf[i]) || wanted.has(detailOf[i]));
      if (right <= drawn && !kept && !found && !inChain.has(i)) continue;  // it would fall on a pixel that is taken
      const begin = Math.max(left, label - 2, Math.min(drawn, right - 1)), wide = Math.min(right, width + 2) - begin;
      g.globalAlpha = (wanted && !found) || aside ? 0.2 : 1;
      g.fillStyle = colour(ranks.get(categoryOf[i]));
      g.fillRect(begin, top + 2, wide, LANE - 4);
      g.globalAlpha = 1;
      if (wide > 30) {
        g.fillStyle = ink;
        g.fillText(fit(words[nameOf[i]], wide - 6), begin + 3, top + LANE / 2);
      }
      if (inChain.has(i)) { g.fillStyle = bad; g.fillRect(begin, top + LANE - 4, Math.max(wide, 1), 3); }
      if (wide > 4) { g.fillStyle = panel; g.fillRect(begin + wide - 0.5, top + 2, 0.5, LANE - 4); }
      if (kept || found) {
        g.strokeStyle = kept ? bad : ink;
        g.lineWidth = kept ? 2 : 1;
        g.strokeRect(begin + 0.5, top + 2, Math.max(wide - 1, 1), LANE - 4);
      }
      drawn = Math.floor(right);
    }
  };
  const drawCounter = (row, top) => {
    const [, , times, values] = data.counters[row.index];
    const most = values.reduce((a, b) => Math.max(a, b), 0) || 1, base = top + COUNTER - 4;
    g.beginPath();
    g.moveTo(x(times[0] || 0), base);
    let level = base;
    for (let i = 0; i < times.length; i++) {
      const px = x(times[i]);
      g.lineTo(px, level);
      level = base - values[i] / most * (COUNTER - 10);
      g.lineTo(px, level);
    }
    g.lineTo(x(last), level);
    g.lineTo(x(last), base);
    g.fillStyle = colour(0);
    g.fill();
  };
  const drawMemory = (row, top) => {
    const [, span, tensors] = data.memories[row.index], room = MEMORY - 10;
    const y = byte => top + 5 + room * (1 - byte / span);
    g.strokeStyle = line;
    g.strokeRect(label, top + 5, width - label, room);
    tensors.forEach((tensor, number) => {
      if (tensor[1] < from || tensor[0] > to) return;
      const left = Math.max(x(tensor[0]), label - 2), right = Math.min(Math.max(x(tensor[1]), left + 1), width + 2);
      const high = y(tensor[3]), tall = Math.max(y(tensor[2]) - high, 1);
      const found = wanted && wanted.has(tensor[4]);
      g.globalAlpha = wanted && !found ? 0.25 : 0.85;
      g.fillStyle = colour(tensor[4] % 10);
      g.fillRect(left, high, right - left, tall);
      g.globalAlpha = 1;
      if (tall > 2) { g.strokeStyle = panel; g.lineWidth = 0.5; g.strokeRect(left, high, right - left, tall); }
      if ((hovered && hovered.memory === row.index && hovered.tensor === number) || found) {
        g.strokeStyle = found ? ink : bad;
        g.lineWidth = 2;
        g.strokeRect(left, high, right - left, tall);
      }
      if (tall > 12 && right - left > 30) {
        g.fillStyle = ink;
        g.fillText(fit(words[tensor[4]], right - left - 6), left + 3, high + tall / 2);
      }
    });
  };
  const drawArrows = () => {
    g.save();
    g.beginPath();
    g.rect(label, AXIS, width - label, height - AXIS);
    g.clip();
    const one = (source, target) => {
      const left = x(startOf[source] + lengthOf[source]), right = x(startOf[target]);
      const high = laneTop[laneOf[source]] - scroll + LANE / 2, low = laneTop[laneOf[target]] - scroll + LANE / 2;
      if ((left < label && right < label) || (left > width && right > width)) return false;
      if ((high < AXIS && low < AXIS) || (high > height && low > height)) return false;
      const bend = Math.max(12, Math.min(60, Math.abs(right - left) / 2));
      g.beginPath();
      g.moveTo(left, high);
      g.bezierCurveTo(left + bend, high, right - bend, low, right, low);
      g.moveTo(right - 5, low - 3);
      g.lineTo(right, low);
      g.lineTo(right - 5, low + 3);
      g.stroke();
      return true;
    };
    if (at('tl-flows').checked) {
      g.strokeStyle = soft;
      g.lineWidth = 0.6;
      let drawn = 0;
      for (let i = 0; i < data.flows.length && drawn < 4000; i++) drawn += one(...data.flows[i]);
    }
    g.strokeStyle = bad;
    g.lineWidth = 1.4;
    for (const slice of new Set([chosen, hovered ? hovered.slice : -1])) for (const i of arrows.get(slice) || []) one(...data.flows[i]);
    g.lineWidth = 0.8;
    data.chain.forEach((slice, k) => { if (k && laneOf[slice] !== laneOf[data.chain[k - 1]]) one(data.chain[k - 1], slice); });
    g.restore();
  };
  const drawLabels = () => {
    g.fillStyle = panel;
    g.fillRect(0, AXIS, label - 2, height);
    for (const row of rows) {
      const top = row.top - scroll;
      if (top + row.height < AXIS || top > height) continue;
      g.fillStyle = row.kind === 'head' || (row.kind === 'lane' && near && !near.has(row.index)) ? soft : ink;
      if (row.kind === 'lane' && row.index === marked) { g.fillStyle = line; g.fillRect(0, top, label - 2, LANE); g.fillStyle = ink; }
      if (row.kind === 'head') g.fillText(fit(words[row.index], width - 16), 4, top + HEAD / 2 + 2);
      if (row.kind === 'lane') g.fillText(fit(words[data.lanes[row.index][0]], label - 10), 4, top + LANE / 2);
      if (row.kind === 'counter') {
        const [name, unit, , values] = data.counters[row.index];
        g.fillText(fit(words[name], label - 10), 4, top + 13);
        g.fillStyle = soft;
        g.fillText(fit(`to ${format(values.reduce((a, b) => Math.max(a, b), 0))} ${words[unit]}`, label - 10), 4, top + 28);
      }
      if (row.kind === 'memory') {
        const [name, span, , peak] = data.memories[row.index];
        g.fillText(fit(words[name], label - 10), 4, top + 13);
        g.fillStyle = soft;
        g.fillText(fit(`${format(span)} bytes`, label - 10), 4, top + 28);
        g.fillText(fit(`peak ${format(peak)}`, label - 10), 4, top + 43);
      }
    }
    g.fillStyle = line;
    g.fillRect(label - 1, AXIS, 1, height);
  };
  const drawAxis = () => {
    g.fillStyle = panel;
    g.fillRect(0, 0, width, AXIS);
    g.fillStyle = soft;
    const about = (to - from) / Math.max((width - label) / 90, 1), ten = 10 ** Math.floor(Math.log10(about));
    const step = [1, 2, 5, 10].map(n => n * ten).find(n => n >= about);
    for (let when = Math.ceil(from / step) * step; when <= to; when += step) {
      const px = x(when);
      g.fillRect(px, AXIS - 5, 1, 5);
      const text = format(when), wide = g.measureText(text).width;
      if (px + wide / 2 < width) g.fillText(text, Math.max(px - wide / 2, label), AXIS / 2 - 2);
    }
    const named = data.stretches.find(([start, end]) => start < to && end > from);
    g.fillText(fit(named ? `${data.unit}, ${words[named[2]]}` : data.unit, label - 8), 4, AXIS / 2 - 2);
    g.fillStyle = line;
    g.fillRect(0, AXIS - 1, width, 1);
  };

  // What is under a point, and what is said of it.
  const under = (px, py) => {
    if (py < AXIS) return null;
    const row = rows.find(item => py + scroll >= item.top && py + scroll < item.top + item.height), when = time(px);
    if (!row) return null;
    if (px < label) return {label: row, slice: -1};
    if (row.kind === 'lane') {
      const lane = inLane[row.index], slack = (to - from) / (width - label) * 2;
      let best = -1, least = Infinity;
      for (let k = firstIn(lane, when - slack); k < lane.length && startOf[lane[k]] <= when + slack; k++) {
        const i = lane[k], far = Math.max(startOf[i] - when, when - startOf[i] - lengthOf[i], 0);
        if (far < least) { best = i; least = far; }
      }
      return best < 0 ? null : {slice: best};
    }
    if (row.kind === 'memory') {
      const [, span, tensors] = data.memories[row.index];
      const byte = (1 - (py + scroll - row.top - 5) / (MEMORY - 10)) * span;
      const tensor = tensors.findLastIndex(t => t[0] <= when && when < t[1] && t[2] <= byte && byte < t[3]);
      return tensor < 0 ? null : {memory: row.index, tensor, slice: -1};
    }
    return row.kind === 'counter' ? {counter: row.index, when, slice: -1} : null;
  };
  const describe = what => {
    if (what.label) {
      const {kind, index} = what.label;
      return words[kind === 'head' ? index : {lane: data.lanes, counter: data.counters, memory: data.memories}[kind][index][0]];
    }
    if (what.counter !== undefined) {
      const [name, unit, times, values] = data.counters[what.counter];
      return `${words[name]}\n${format(values[times.findLastIndex(t => t <= what.when)] || 0)} ${words[unit]} at ${moment(what.when)}`;
    }
    if (what.tensor !== undefined) {
      const [start, end, low, high, name, size] = data.memories[what.memory][2][what.tensor];
      return `${words[name]}\n${format(size)} bytes, from ${low.toLocaleString('en')} to ${(high - 1).toLocaleString('en')}\n` +
        `lives from ${format(start)} to ${moment(end)}`;
    }
    const i = what.slice, parts = [words[nameOf[i]], words[data.lanes[laneOf[i]][0]]];
    parts.push(`${format(startOf[i])} to ${moment(startOf[i] + lengthOf[i])}, lasts ${format(lengthOf[i])}`);
    if (data.perMicrosecond !== 1) parts.push(`${format(lengthOf[i] / data.perMicrosecond)} µs`);
    if (words[categoryOf[i]]) parts.push(words[categoryOf[i]]);
    if (words[detailOf[i]]) parts.push(words[detailOf[i]]);
    if (inChain.has(i)) parts.push('on the critical path');
    for (const index of arrows.get(i) || []) {
      const [source, target, name] = data.flows[index];
      if (target === i) parts.push(`waited for ${words[nameOf[source]]}${words[name] ? ` (${words[name]})` : ''}`);
    }
    return parts.join('\n');
  };
  const tell = (what, px, py) => {
    hovered = what;
    tip.hidden = !what;
    if (what) {
      tip.textContent = describe(what);
      tip.style.left = Math.max(0, Math.min(px + 14, width - tip.offsetWidth - 4)) + 'px';
      tip.style.top = Math.max(0, py + 18 + tip.offsetHeight > height ? py - tip.offsetHeight - 10 : py + 18) + 'px';
    }
    redraw();
  };

  // Pointers: one drags, two zoom.
  const zoom = (factor, px) => {
    const centre = time(Math.max(px, label)), span = Math.min(Math.max((to - from) * factor, least), whole * 1.02);
    const share = (centre - from) / (to - from);
    from = centre - span * share;
    to = from + span;
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
    const box = canvas.getBoundingClientRect(), before = pointers.get(event.pointerId);
    if (!before) return tell(under(event.clientX - box.left, event.clientY - box.top), event.clientX - box.left, event.clientY - box.top);
    const others = [...pointers.values()].filter(other => other.pointerId !== event.pointerId);
    if (others.length) {
      const spread = (a, b) => Math.max(Math.abs(a.clientX - b.clientX), 8);
      zoom(spread(before, others[0]) / spread(event, others[0]), (event.clientX + others[0].clientX) / 2 - box.left);
    }
    const shift = (event.clientX - before.clientX) / (width - label) * (to - from) / (others.length + 1);
    from -= shift;
    to -= shift;
    scroll -= event.clientY - before.clientY;
    moved += Math.abs(event.clientX - before.clientX) + Math.abs(event.clientY - before.clientY);
    pointers.set(event.pointerId, event);
    clamp();
    redraw();
  });
  const lift = event => {
    if (pointers.delete(event.pointerId) && moved < 4 && event.type === 'pointerup') {
      const box = canvas.getBoundingClientRect(), px = event.clientX - box.left, py = event.clientY - box.top;
      const what = under(px, py);
      chosen = what && what.slice >= 0 && what.slice !== chosen ? what.slice : -1;
      tell(what, px, py);
      const name = what && what.slice >= 0 ? words[data.lanes[laneOf[what.slice]][0]] : px < label ? laneAt(py) : '';
      if (name) root.dispatchEvent(new CustomEvent('chosen', {bubbles: true, detail: name}));
    }
  };
  const laneAt = py => {
    const row = rows.find(item => item.kind === 'lane' && py + scroll >= item.top && py + scroll < item.top + item.height);
    return row ? words[data.lanes[row.index][0]] : '';
  };
  canvas.addEventListener('pointerup', lift);
  canvas.addEventListener('pointercancel', lift);
  canvas.addEventListener('pointerleave', () => { if (!pointers.size) tell(null); });
  canvas.addEventListener('wheel', event => {
    const box = canvas.getBoundingClientRect();
    if (event.ctrlKey || event.metaKey) zoom(Math.exp(event.deltaY * 0.004), event.clientX - box.left);
    else {
      const shift = (event.deltaX + (event.shiftKey ? event.deltaY : 0)) / (width - label) * (to - from), old = scroll;
      from += shift;
      to += shift;
      if (!event.shiftKey) scroll += event.deltaY;
      clamp();
      if (scroll === old && !shift) return;  // at its end the page scrolls on
      redraw();
    }
    event.preventDefault();
  }, {passive: false});
  const middle = () => label + (width - label) / 2;
  const all = () => { from = first; to = last; scroll = 0; clamp(); redraw(); };
  at('tl-in').onclick = () => zoom(0.5, middle());
  at('tl-out').onclick = () => zoom(2, middle());
  at('tl-fit').onclick = all;
  at('tl-flows').onchange = redraw;
  view.addEventListener('keydown', event => {
    const shift = (to - from) * 0.15, keys = {
      '+': () => zoom(0.7, middle()), '=': () => zoom(0.7, middle()), '-': () => zoom(1.4, middle()), '0': all,
      ArrowLeft: () => { from -= shift; to -= shift; }, ArrowRight: () => { from += shift; to += shift; },
      ArrowUp: () => { scroll -= 60; }, ArrowDown: () => { scroll += 60; }, Escape: () => { chosen = -1; tell(null); },
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
    wanted = text ? new Set(words.flatMap((word, i) => word.toLowerCase().includes(text) ? [i] : [])) : null;
    hits = [];
    next = -1;
    if (wanted)
      for (let i = 0; i < laneOf.length; i++)
        if (wanted.has(nameOf[i]) || wanted.has(categoryOf[i]) || wanted.has(detailOf[i])) hits.push(i);
    hits.sort((a, b) => startOf[a] - startOf[b]);
    at('tl-found').textContent = wanted ? `${hits.length.toLocaleString('en')} found` : '';
    redraw();
  });
  search.addEventListener('keydown', event => {
    if (event.key !== 'Enter' || !hits.length) return;
    next = (next + (event.shiftKey ? hits.length - 1 : 1)) % hits.length;
    chosen = hits[next];
    const span = Math.min(to - from, Math.max(lengthOf[chosen] * 20, least)), centre = startOf[chosen] + lengthOf[chosen] / 2;
    from = centre - span / 2;
    to = centre + span / 2;
    scroll = laneTop[laneOf[chosen]] - height / 2;
    clamp();
    at('tl-found').textContent = `${(next + 1).toLocaleString('en')} of ${hits.length.toLocaleString('en')}: ${words[nameOf[chosen]]}`;
    redraw();
  });

  // What the page chose: its lane is marked and brought into view, others but its neighbours' step back.
  root.mark = (name, neighbours) => {
    const index = data.lanes.findIndex(lane => words[lane[0]] === name);
    const beside = lane => lane === name || neighbours.has(lane) || lane.split(' > ').includes(name);
    marked = index < 0 ? null : index;
    near = name ? new Set(data.lanes.flatMap((lane, i) => beside(words[lane[0]]) ? [i] : [])) : null;
    if (near && !near.size) near = null;
    if (marked !== null && (laneTop[marked] - scroll < AXIS || laneTop[marked] - scroll > height - LANE))
      scroll = laneTop[marked] - height / 2;
    clamp();
    redraw();
  };
  root.shown = () => ({from, to, lanes: data.lanes.map(lane => words[lane[0]]), slices: inLane.map(lane => lane.map(i => ({
    name: words[nameOf[i]], start: startOf[i], end: startOf[i] + lengthOf[i], chain: inChain.has(i),
  })))});

  const start = () => { scheme(); legend(); resize(); redraw(); };
  dark.addEventListener('change', start);
  new ResizeObserver(() => { resize(); redraw(); }).observe(view);
  start();
};
