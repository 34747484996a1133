'use strict';
// The search of a timeline: first the lanes whose names contain the words, the shortest first, then slices and tensors.
// Enter goes from one to the next.
const timelineSearch = (at, model, rows, view, {showLane, showSlice, redraw}) => {
  const {words, laneOf, startOf, nameOf} = model, {layout, laneNames, lanesFound, lanesWith} = rows;
  const MOST = 8;  // lanes that are listed
  const input = at('tl-search'), count = at('tl-found'), list = at('tl-lanes'), only = at('tl-only');
  const number = value => value.toLocaleString('en');
  let lanes = [], slices = [], next = -1;

  const found = () => {
    const parts = [];
    if (lanes.length) parts.push(`${number(lanes.length)} ${lanes.length > 1 ? 'lanes' : 'lane'}`);
    if (slices.length || !lanes.length) parts.push(lanes.length ? `${number(slices.length)} slices` : number(slices.length));
    return parts.join(' and ') + ' found';
  };
  const goToLane = index => {
    next = index;
    showLane(lanes[index]);
    count.textContent = `${lanes.length > 1 ? `lane ${index + 1} of ${number(lanes.length)}` : 'lane'}: ${laneNames[lanes[index]]}`;
  };
  const go = index => {
    if (index < lanes.length) return goToLane(index);
    next = index;
    const slice = slices[index - lanes.length];
    showSlice(slice);
    count.textContent = `${number(index - lanes.length + 1)} of ${number(slices.length)}: ${words[nameOf[slice]]}`;
  };
  const listLanes = () => {
    list.textContent = '';
    lanes.slice(0, MOST).forEach((lane, i) => {
      const button = make('button', '', laneNames[lane]);
      button.type = 'button';
      button.onclick = () => goToLane(i);
      list.append(button);
    });
    if (lanes.length > MOST) list.append(make('span', 'soft', `and ${number(lanes.length - MOST)} more lanes`));
  };
  const filter = () => {
    layout.only = only.checked && view.wanted ? new Set([...lanes, ...lanesWith(view.wanted)]) : null;
    if (layout.only && !layout.only.size) layout.only = null;
    rows.place();
    redraw();
  };
  input.addEventListener('input', () => {
    const text = input.value.trim().toLowerCase();
    view.wanted = text ? new Set(words.flatMap((word, i) => word.toLowerCase().includes(text) ? [i] : [])) : null;
    lanes = text ? lanesFound(text) : [];
    view.wantedLanes = new Set(lanes);
    slices = [];
    next = -1;
    if (view.wanted)
      for (let i = 0; i < laneOf.length; i++)
        if (model.isFound(view.wanted, i)) slices.push(i);
    slices.sort((a, b) => startOf[a] - startOf[b]);
    count.textContent = view.wanted ? found() : '';
    listLanes();
    filter();
  });
  only.onchange = filter;
  input.addEventListener('keydown', event => {
    const all = lanes.length + slices.length;
    if (event.key === 'Enter' && all) go((next + (event.shiftKey ? all - 1 + (next < 0) : 1)) % all);
  });
  return {hits: () => slices};
};
