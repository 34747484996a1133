'use strict';
// What stands where in a timeline: rows from top to bottom, each lane's slices in order, and what they are called.
const TIMELINE = {AXIS: 26, LANE: 18, HEAD: 20, COUNTER: 44, MEMORY: 150, GAP: 6};
const timelineModel = data => {
  const {AXIS, LANE, HEAD, COUNTER, MEMORY} = TIMELINE;
  const words = data.words, [laneOf, startOf, lengthOf, nameOf, categoryOf, detailOf] = data.slices;

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

  const firstIn = (lane, when) => {  // the first slice that ends at or after a time
    let low = 0, high = lane.length;
    while (low < high) {
      const middle = (low + high) >> 1, i = lane[middle];
      if (startOf[i] + lengthOf[i] < when) low = middle + 1; else high = middle;
    }
    return low;
  };

  // Categories, those that take longest first.
  const totals = new Map();
  for (let i = 0; i < laneOf.length; i++) totals.set(categoryOf[i], (totals.get(categoryOf[i]) || 0) + lengthOf[i]);
  const ranks = new Map([...totals.keys()].sort((a, b) => totals.get(b) - totals.get(a)).map((key, i) => [key, i]));

  const format = value => (Math.round(value * 1000) / 1000).toLocaleString('en');
  const moment = value => `${format(value)} ${data.unit}`;
  const isFound = (wanted, i) => wanted && (wanted.has(nameOf[i]) || wanted.has(categoryOf[i]) || wanted.has(detailOf[i]));
  return {
    data, words, laneOf, startOf, lengthOf, nameOf, categoryOf, detailOf, rows, bottom, laneTop, inLane, first, last, whole,
    inChain, arrows, totals, ranks, firstIn, format, moment, isFound,
  };
};
