// Texts of a page of the site whose contrast against what stands behind them is under 4.5 to 1, each kind once.
() => {
  const parse = text => {
    const [r, g, b, a = 1] = (text.match(/[\d.]+/g) || [0, 0, 0, 0]).map(Number);
    return [r, g, b, text === 'transparent' ? 0 : a];
  };
  const over = (top, below) => [0, 1, 2].map(i => top[i] * top[3] + below[i] * (1 - top[3])).concat(1);
  const light = rgb => rgb.slice(0, 3).map(v => (v /= 255) <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4)
    .reduce((sum, v, i) => sum + v * [.2126, .7152, .0722][i], 0);
  const behind = item => {
    const layers = [];
    for (; item; item = item.parentElement) layers.push(parse(getComputedStyle(item).backgroundColor));
    return layers.reduceRight((below, top) => over(top, below), [255, 255, 255, 1]);
  };
  const poor = {};
  for (const item of document.querySelectorAll('body *')) {
    const ownText = [...item.childNodes].some(node => node.nodeType === 3 && node.data.trim());
    if (!item.getClientRects().length || !ownText || item.closest('script, style')) continue;
    const ground = behind(item);
    const [x, y] = [light(over(parse(getComputedStyle(item).color), ground)), light(ground)];
    const ratio = (Math.max(x, y) + .05) / (Math.min(x, y) + .05);
    if (ratio < 4.5) poor[`${item.tagName}.${item.className}`] = ratio.toFixed(2);
  }
  return Object.entries(poor).map(([name, ratio]) => `${name}: ${ratio}`);
}
