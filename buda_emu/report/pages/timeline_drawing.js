'use strict';
// Draws what of a timeline is in view on a canvas' context.
const timelineDrawing = (model, {layout, laneNames}, view, g) => {
  const {AXIS, LANE, HEAD, COUNTER, MEMORY} = TIMELINE;
  const {data, words, startOf, lengthOf, nameOf, categoryOf, inLane, first, last, inChain, ranks} = model;
  const {firstIn, density, format, isFound} = model;
  const shortName = shortNames(laneNames);

  // Colours: a category keeps its own in both schemes; without categories names take their place.
  const colour = rank => colours[rank % 10];
  let ink, soft, line, panel, bad, bar, colours;
  const scheme = () => {
    const style = getComputedStyle(document.documentElement), of = name => style.getPropertyValue(name).trim();
    [ink, soft, line, panel, bad, bar] = ['--ink', '--soft', '--line', '--panel', '--bad', '--bar'].map(of);
    colours = Array.from({length: 10}, (_, i) => of('--k' + i));
  };
  const legend = box => {
    box.textContent = '';
    const heading = document.createElement('span');
    heading.textContent = `${data.unit} at work:`;
    box.append(heading);
    for (const [key, rank] of ranks) {
      if (!words[key] || rank >= 10) continue;
      const item = document.createElement('span'), spot = document.createElement('i');
      spot.style.background = colour(rank);
      const total = model.totals.get(key);
      item.append(spot, `${words[key]} ${format(total < 100 ? total : Math.round(total))}`);
      box.append(item);
    }
    if (!inChain.size) return;
    const item = document.createElement('span'), spot = document.createElement('i');
    spot.className = 'chain';
    item.append(spot, 'critical path');
    box.append(item);
  };
  const cut = (text, room, shorten) => {
    if (g.measureText(text).width <= room) return text;
    for (let most = Math.min(Math.floor(room / 5), text.length) - 1; most > 2; most--) {
      const short = shorten(text, most);
      if (g.measureText(short).width <= room) return short;
    }
    return '';
  };
  const middle = (text, most) => text.slice(0, Math.ceil(most / 2)) + '…' + text.slice(text.length - Math.floor(most / 2));
  const fit = (text, room) => cut(text, room, middle);

  const draw = () => {
    const {width, height, label, scroll} = view;
    g.fillStyle = panel;
    g.fillRect(0, 0, width, height);
    g.textBaseline = 'middle';
    g.font = '11px system-ui, sans-serif';
    drawStretches();
    for (const row of layout.rows) {
      const top = row.top - scroll;
      if (top + row.height < AXIS || top > height) continue;
      g.save();
      g.beginPath();
      g.rect(label, Math.max(top, AXIS), width - label, row.height);
      g.clip();
      if (row.kind === 'head') drawHead(row, top);
      if (row.kind === 'lane') drawLane(row, top);
      if (row.kind === 'counter') drawCounter(row, top);
      if (row.kind === 'memory') drawMemory(row, top);
      g.restore();
    }
    drawArrows({ink, soft, panel, bad});
    drawLabels();
    drawAxis();
    if (!view.hasContent()) drawHint();
  };
  const drawHint = () => {
    const text = 'nothing works here in these lanes: f shows everything';
    g.font = '13px system-ui, sans-serif';
    g.fillStyle = ink;
    g.fillText(fit(text, view.width - view.label - 16), view.label + 8, Math.min(view.height / 2, AXIS + 60));
  };
  const drawHead = (row, top) => {  // of what is folded: how much of it is at work
    const {width, label, from, to} = view;
    g.globalAlpha = 0.5;
    g.fillStyle = line;
    g.fillRect(label, top + 1, width - label, HEAD - 2);
    g.globalAlpha = 1;
    if (!layout.folded.has(row.key)) return;
    const bins = density(row.lanes, from, to, Math.max(Math.floor((width - label) / 2), 1)), full = HEAD - 5;
    const most = bins.reduce((a, b) => Math.max(a, b), 0) || 1;
    g.fillStyle = colour(0);
    bins.forEach((value, i) => {
      const tall = value ? Math.max(full * value / most, 1.5) : 0;
      g.fillRect(label + 2 * i, top + HEAD - 2 - tall, 2, tall);
    });
  };
  const drawStretches = () => {
    const {width, height, label, x} = view;
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
    const {width, label, from, to, chosen, hovered, wanted, near, x} = view;
    const aside = near && !near.has(row.index), isWanted = view.wantedLanes.has(row.index);
    g.fillStyle = line;
    g.fillRect(label, top + LANE - 1, width - label, 0.5);
    const lane = inLane[row.index];
    let drawn = -1;
    for (let k = firstIn(lane, from); k < lane.length; k++) {
      const i = lane[k];
      if (startOf[i] > to) break;
      const left = x(startOf[i]), right = Math.max(x(startOf[i] + lengthOf[i]), left + 1);
      const kept = i === chosen || (hovered && hovered.slice === i);
      const found = isFound(wanted, i);
      if (right <= drawn && !kept && !found && !inChain.has(i)) continue;  // it would fall on a pixel that is taken
      const begin = Math.max(left, label - 2, Math.min(drawn, right - 1)), wide = Math.min(right, width + 2) - begin;
      g.globalAlpha = (wanted && !found && !isWanted) || aside ? 0.2 : 1;
      g.fillStyle = colour(ranks.get(categoryOf[i]));
      g.fillRect(begin, top + 2, wide, LANE - 4);
      g.globalAlpha = 1;
      if (wide > 30) {
        g.fillStyle = ink;
        g.fillText(fit(words[nameOf[i]], wide - 6), begin + 3, top + LANE / 2);
      }
      if (inChain.has(i)) { g.fillStyle = bad; g.fillRect(begin, top + LANE - 4, Math.max(wide, 1), 3); }
      if (wide > 4) { g.fillStyle = panel; g.fillRect(begin + wide - 0.5, top + 2, 0.5, LANE - 4); }
      if (kept || (found && !isWanted)) {
        g.strokeStyle = kept ? bad : ink;
        g.lineWidth = kept ? 2 : 1;
        g.strokeRect(begin + 0.5, top + 2, Math.max(wide - 1, 1), LANE - 4);
      }
      drawn = Math.floor(right);
    }
  };
  const drawCounter = (row, top) => {
    const {x} = view;
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
    const {width, label, from, to, hovered, wanted, x} = view;
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
  const drawArrows = timelineArrows(model, layout, view, g);
  const drawLabels = () => {
    const {width, height, label, scroll, marked, near} = view;
    g.fillStyle = panel;
    g.fillRect(0, AXIS, label - 2, height);
    for (const row of layout.rows) {
      const top = row.top - scroll;
      if (top + row.height < AXIS || top > height) continue;
      g.fillStyle = row.kind === 'lane' && near && !near.has(row.index) ? soft : ink;
      if (row.kind === 'lane' && row.index === marked) { g.fillStyle = line; g.fillRect(0, top, label - 2, LANE); g.fillStyle = ink; }
      if (row.kind === 'head') drawHeadLabel(row, top);
      if (row.kind === 'lane') g.fillText(cut(laneNames[row.index], label - 10, shortName), 4, top + LANE / 2);
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
  const drawHeadLabel = (row, top) => {
    const left = 4 + 12 * row.level, isFolded = layout.folded.has(row.key), count = ` (${row.lanes.length})`;
    const room = (isFolded ? view.label : view.width) - left - 22 - g.measureText(count).width;
    g.font = 'bold 11px system-ui, sans-serif';
    g.fillText((isFolded ? '▸ ' : '▾ ') + fit(row.title, room) + count, left, top + HEAD / 2);
    g.font = '11px system-ui, sans-serif';
  };
  const drawAxis = () => {
    const {width, label, from, to, x} = view;
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
  return {draw, scheme, legend, colours: () => ({ink, soft, line, panel, bad, bar})};
};
