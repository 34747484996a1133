'use strict';
// What of a timeline's model is under a point of the view, and what is said of it.
const timelinePointed = (model, {layout, laneNames}, view) => {
  const {AXIS, MEMORY} = TIMELINE;
  const {data, words, laneOf, startOf, lengthOf, nameOf, categoryOf, detailOf, inLane, inChain, arrows} = model;
  const {firstIn, format, moment, busy, whole} = model;
  const rowAt = down => layout.rows.find(row => down >= row.top && down < row.top + row.height);
  const under = (px, py) => {
    const {width, label, from, to, scroll} = view;
    if (py < AXIS) return null;
    const row = rowAt(py + scroll), when = view.time(px);
    if (!row) return null;
    if (px < label || row.kind === 'head') return {label: row, slice: -1};
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
      const {kind, index, title, lanes, key} = what.label;
      if (kind === 'head') return `${title}: ${format(lanes.length)} lanes\na click ${layout.folded.has(key) ? 'unfolds' : 'folds'}`;
      if (kind === 'lane') return `${laneNames[index]}\nat work ${moment(busy[index])}, ${format(100 * busy[index] / whole)} %`;
      return words[{counter: data.counters, memory: data.memories}[kind][index][0]];
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
  const laneAt = py => {
    const row = rowAt(py + view.scroll);
    return row && row.kind === 'lane' ? laneNames[row.index] : '';
  };
  return {under, describe, laneAt};
};
