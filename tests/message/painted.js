// What a browser paints of a page: {shown, spoken}. Runs once the page is laid out; scripts of the
// page itself are off. Text that nobody can see is blanked first, then `innerText` is taken, which
// knows blocks, cells and boxes that aren't rendered.
() => {
  const NEAR = 24, TINY = 3, FAR = 500, BEYOND = 3000, CUT = 4;
  const parse = (text) => {
    const m = /^rgba?\(([^)]*)\)$/.exec(text);
    if (!m) return null;
    const [r, g, b, a = 1] = m[1].split(/[\s,\/]+/).map(Number);
    return {r, g, b, a};
  };
  const styles = new Map();
  const of = (element) => {
    if (!styles.has(element)) styles.set(element, getComputedStyle(element));
    return styles.get(element);
  };
  const above = (element) => element.parentElement;
  const boxless = (style) => style.display === "inline" || style.display === "contents";
  // the colour behind an element, null where a picture stands
  const behind = (element) => {
    const layers = [];
    for (let e = element; e; e = above(e)) {
      const style = of(e);
      if (style.backgroundImage !== "none" || e.hasAttribute("background")) return null;
      const colour = parse(style.backgroundColor);
      if (!colour) return null;
      layers.push(colour);
      if (colour.a === 1) break;
    }
    let seen = {r: 255, g: 255, b: 255};
    for (const {r, g, b, a} of layers.reverse())
      seen = {r: seen.r + (r - seen.r) * a, g: seen.g + (g - seen.g) * a, b: seen.b + (b - seen.b) * a};
    return seen;
  };
  const opacity = (element) => {
    let all = 1;
    for (let e = element; e; e = above(e)) {
      all *= Number(of(e).opacity);
      const filtered = /opacity\(([0-9.]+)\)/.exec(of(e).filter);
      if (filtered) all *= Number(filtered[1]);
    }
    return all;
  };
  const faint = (element) => {
    const style = of(element), alpha = opacity(element);
    for (let e = element; e; e = above(e))
      if (/text/.test(of(e).backgroundClip)) return alpha * 255 <= NEAR;
    if (style.textShadow !== "none") return alpha * 255 <= NEAR;
    const colour = parse(style.webkitTextFillColor), back = behind(element);
    if (!colour || !back) return (colour ? colour.a : 1) * alpha * 255 <= NEAR;
    const far = Math.max(...["r", "g", "b"].map((c) => Math.abs(colour[c] - back[c])));
    return far * colour.a * alpha <= NEAR;
  };
  const clipped = (element, rect) => {
    if (element.closest("marquee")) return false; // it comes into sight
    let {left, right, top, bottom} = rect, loose = false;
    for (let e = element; e; e = above(e)) {
      const style = of(e);
      if (!boxless(style) && !(loose && style.position === "static")) {
        const box = e.getBoundingClientRect(), root = e === document.body || e === document.documentElement;
        if (!root && style.overflowX !== "visible") {
          left = Math.max(left, box.left);
          right = Math.min(right, style.overflowX === "visible" ? right : box.right);
        }
        if (!root && style.overflowY !== "visible") {
          top = Math.max(top, box.top);
          bottom = Math.min(bottom, box.bottom);
        }
        if (style.clip !== "auto" && /absolute|fixed/.test(style.position)) {
          const [t, r, b, l] = style.clip.match(/-?[0-9.]+px|auto/g).map(parseFloat);
          if (b - t < 2 || r - l < 2) return true;
        }
      }
      if (style.clipPath !== "none") {
        const m = /^(inset|circle|ellipse|polygon)\((.*)\)/.exec(style.clipPath);
        if (m) {
          const n = m[2].split(/ at | round /)[0].split(/[\s,]+/).filter(Boolean);
          const v = n.map(parseFloat);
          if (m[1] === "inset") {
            const [t, r = t, b = t, l = r] = v, unit = (k) => (/%/.test(n[k] || n[0]) ? 100 : 1000);
            if ((t + b) / unit(0) >= 1 || (l + r) / unit(1) >= 1) return true;
          } else if (m[1] === "polygon") {
            const xs = v.filter((_, i) => i % 2 === 0), ys = v.filter((_, i) => i % 2);
            if (new Set(xs).size < 2 || new Set(ys).size < 2) return true;
          } else if (v.some((each) => each === 0)) return true;
        }
      }
      if (/absolute|fixed/.test(style.position)) loose = true;
      else if (style.position !== "static") loose = false;
    }
    return right - left < Math.min(CUT, rect.width) || bottom - top < Math.min(CUT, rect.height);
  };
  const scaled = (element) => {
    let size = parseFloat(of(element).fontSize);
    for (let e = element; e; e = above(e)) {
      const style = of(e);
      if (boxless(style)) continue;
      const m = new DOMMatrix(style.transform === "none" ? "" : style.transform);
      size *= Math.min(Math.hypot(m.a, m.b), Math.hypot(m.c, m.d));
      if (style.scale !== "none") size *= Math.min(...style.scale.split(" ").slice(0, 2).map(Number));
    }
    return size * (element.currentCSSZoom || 1);
  };
  const unseen = (element, rects) => {
    const style = of(element);
    if (style.visibility !== "visible") return true;
    const box = rects.filter((each) => each.width > 0 && each.height > 0);
    if (!box.length || scaled(element) < TINY || faint(element)) return true;
    const x = scrollX, y = scrollY;
    return !box.some((each) => !(
      (each.right + x <= 0 && !element.closest("marquee")) || each.bottom + y <= 0 || each.left + x >= BEYOND || clipped(element, each)
    ));
  };
  const spoken = [];
  const skipped = "script,style,title,noembed,noframes,iframe,template,head";
  for (const element of document.querySelectorAll("[alt],[title],[placeholder],input,optgroup,textarea")) {
    if (element.closest("svg,math")) continue;
    const rects = element.tagName === "OPTGROUP" ? element.closest("select")?.getClientRects() : element.getClientRects();
    if (of(element).display !== "contents" && !(rects && rects.length)) continue;
    if (of(element).visibility !== "visible" || opacity(element) * 255 <= NEAR) continue;
    for (const name of ["alt", "title", "placeholder"])
      if (element.hasAttribute(name)) spoken.push(element.getAttribute(name).slice(0, 1024));
    if (element.tagName === "INPUT" && !/hidden|checkbox|radio|file|password|range|color|image/i.test(element.type))
      spoken.push(element.getAttribute("value") || "");
    if (element.tagName === "OPTGROUP") spoken.push(element.label);
    if (element.tagName === "TEXTAREA" && !unseen(element, [...element.getClientRects()]))
      spoken.push(element.value);
  }
  const walker = document.createTreeWalker(document.documentElement, NodeFilter.SHOW_TEXT);
  const gone = [];
  const range = document.createRange();
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const element = node.parentElement;
    if (!/\S/.test(node.data) || element.closest(skipped) || element.closest("option,textarea")) continue;
    range.selectNodeContents(node);
    if (unseen(element, [...range.getClientRects()])) gone.push(node);
  }
  for (const option of document.querySelectorAll("option")) {
    const select = option.closest("select");
    const element = select || option;
    if (unseen(element, [...element.getClientRects()])) gone.push(...option.childNodes);
  }
  for (const node of gone) node.data = node.data ? node.data.replace(/\S/g, "") : "";
  const page = document.documentElement; // not rendered, it would give all its text
  return {shown: of(page).display === "none" ? "" : page.innerText || "", spoken};
}
