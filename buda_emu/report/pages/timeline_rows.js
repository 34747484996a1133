'use strict';
// The rows of a timeline from top to bottom: sections (such as an epoch), the groups in them, and the lanes of each
// group. Sections and groups fold; lanes stand in the order of the document or the busiest first.
const timelineRows = model => {
  const {AXIS, LANE, HEAD, COUNTER, MEMORY} = TIMELINE;
  const {data, words, into, isFound, inLane, startOf, lengthOf, categoryOf, detailOf} = model;
  const FEW = 60;  // rows up to which nothing is folded at first
  const sections = new Map();  // section -> group -> lanes
  data.lanes.forEach(([, group, section], lane) => {
    if (!sections.has(section)) sections.set(section, new Map());
    into(sections.get(section), group, lane);
  });
  const laneNames = data.lanes.map(([name]) => words[name]);
  // The threads of an op are lanes of one unit, `op: category`. It is at work from the first thread's start of a part to
  // the last thread's end.
  const units = new Map(), work = new Float64Array(data.lanes.length);
  laneNames.forEach((name, lane) => {
    const suffix = inLane[lane].length ? ': ' + words[categoryOf[inLane[lane][0]]] : '';
    const unit = suffix && name.endsWith(suffix) ? name.slice(0, -suffix.length) : name;
    into(units, `${data.lanes[lane][1]} ${unit}`, lane);
  });
  const workOf = lanes => {
    if (lanes.length === 1) return inLane[lanes[0]].reduce((sum, i) => sum + lengthOf[i], 0);
    const spans = new Map();
    for (const i of lanes.flatMap(lane => inLane[lane])) {
      const [from, to] = spans.get(detailOf[i]) ?? [Infinity, 0];
      spans.set(detailOf[i], [Math.min(from, startOf[i]), Math.max(to, startOf[i] + lengthOf[i])]);
    }
    return [...spans.values()].reduce((sum, [from, to]) => sum + to - from, 0);
  };
  for (const lanes of units.values()) {
    const total = workOf(lanes);
    for (const lane of lanes) work[lane] = total;
  }
  const counters = new Map(), groupsWithLanes = new Set(data.lanes.map(([, group]) => group));
  data.counters.forEach((counter, i) => into(counters, counter[4], i));
  const sectionOf = key => `section ${key}`, groupOf = (section, key) => `group ${section} ${key}`;
  const layout = {
    rows: [], bottom: 0, laneTop: new Float64Array(data.lanes.length), isShown: new Uint8Array(data.lanes.length),
    folded: new Set(), busiestFirst: sections.size > 1 || data.lanes.some(lane => words[lane[1]]), only: null,
  };
  const lanesOf = section => [...sections.get(section).values()].flat();
  const isIn = lane => !layout.only || layout.only.has(lane);

  const add = (kind, height, more) => {
    layout.rows.push({kind, top: layout.bottom, height, ...more});
    layout.bottom += height;
  };
  const addHead = (key, level, title, lanes) => {  // true if what is below is shown
    add('head', HEAD, {key, level, title, lanes});
    for (const lane of lanes) layout.laneTop[lane] = layout.bottom - (HEAD + LANE) / 2;
    return !layout.folded.has(key);
  };
  const addGroup = (section, group, all) => {
    const lanes = all.filter(isIn), title = words[group].replace(words[section] + ', ', '');
    if (!lanes.length || (words[group] && !addHead(groupOf(section, group), words[section] ? 1 : 0, title, lanes))) return;
    if (layout.busiestFirst) lanes.sort((a, b) => work[b] - work[a]);  // those of a unit stay together
    for (const lane of lanes) {
      layout.laneTop[lane] = layout.bottom;
      layout.isShown[lane] = 1;
      add('lane', LANE, {index: lane});
    }
    if (!layout.only) for (const index of counters.get(group) ?? []) add('counter', COUNTER, {index});
  };
  const place = () => {
    layout.rows.length = 0;
    layout.bottom = AXIS;
    layout.isShown.fill(0);
    for (const [section, groups] of sections) {
      const lanes = lanesOf(section).filter(isIn);
      if (!lanes.length || (words[section] && !addHead(sectionOf(section), 0, words[section], lanes))) continue;
      for (const [group, members] of groups) addGroup(section, group, members);
    }
    for (const [group, indices] of counters)
      if (!groupsWithLanes.has(group)) for (const index of indices) add('counter', COUNTER, {index});
    data.memories.forEach((_, index) => add('memory', MEMORY, {index}));
  };
  const headKeys = () => {
    const keys = [];
    for (const [section, groups] of sections) {
      if (words[section]) keys.push(sectionOf(section));
      for (const group of groups.keys()) if (words[group]) keys.push(groupOf(section, group));
    }
    return keys;
  };
  const fold = key => { if (!layout.folded.delete(key)) layout.folded.add(key); place(); };
  const foldAll = () => { layout.folded = new Set(headKeys()); place(); };
  const unfoldAll = () => { layout.folded = new Set(); place(); };
  const reveal = lane => {  // unfolds what hides a lane
    const [, group, section] = data.lanes[lane];
    layout.folded.delete(sectionOf(section));
    layout.folded.delete(groupOf(section, group));
    if (!isIn(lane)) layout.only = null;
    place();
  };
  // A long timeline begins with the section that takes most time, and in it the group with the busiest lane.
  const foldAtFirst = () => {
    if (sections.size < 2 || data.lanes.length <= FEW) return;
    const span = lanes => {
      let from = Infinity, to = 0;
      for (const lane of lanes) {
        if (!inLane[lane].length) continue;
        const end = inLane[lane][inLane[lane].length - 1];
        from = Math.min(from, startOf[inLane[lane][0]]);
        to = Math.max(to, startOf[end] + lengthOf[end]);
      }
      return to - from;
    };
    const greatest = (keys, value) => [...keys].reduce((best, key) => value(key) > value(best) ? key : best);
    const spans = new Map([...sections.keys()].map(section => [section, span(lanesOf(section))]));
    const longest = greatest(sections.keys(), key => spans.get(key)), groups = sections.get(longest);
    const most = group => groups.get(group).reduce((sum, lane) => Math.max(sum, work[lane]), 0);
    const main = [...groups.keys()].find(group => groups.get(group).some(lane => inLane[lane].some(i => model.inChain.has(i))));
    foldAll();
    layout.folded.delete(sectionOf(longest));
    layout.folded.delete(groupOf(longest, main ?? greatest(groups.keys(), most)));
  };
  const lanesFound = text => laneNames.flatMap((name, lane) => name.toLowerCase().includes(text) ? [lane] : [])
    .sort((a, b) => laneNames[a].length - laneNames[b].length);  // those that say little else come first
  const lanesWith = wanted => data.lanes.flatMap((_, lane) => inLane[lane].some(i => isFound(wanted, i)) ? [lane] : []);
  foldAtFirst();
  place();
  return {layout, place, fold, foldAll, unfoldAll, reveal, headKeys, laneNames, lanesFound, lanesWith};
};
