// SPDX-License-Identifier: MIT OR Apache-2.0
// Buffers, whose bytes lie outside of V8's heap, and JSON, whose text passes through malloc on its way to a file and back.
const fs = require('fs');
const zlib = require('zlib');
let seed = 6;
function random(n) {
  seed = (Math.imul(seed, 1103515245) + 12345) & 0x7fffffff;
  return (seed >>> 8) % n;
}
const kept = new Array(4000).fill(null);
let total = 0;
for (let i = 0; i < 120000; i++) {
  const buffer = Buffer.alloc(200 + random(9000), i & 255);
  const place = random(kept.length);
  if (kept[place]) total += kept[place][0] + kept[place].length;
  kept[place] = buffer;
}
for (let round = 0; round < 6; round++) {
  const documents = [];
  for (let i = 0; i < 8000; i++) {
    documents.push({id: i, name: 'n'.repeat(random(40)), list: [i, i + round], text: 'text '.repeat(random(20))});
  }
  fs.writeFileSync('documents.json', JSON.stringify(documents));
  const packed = zlib.gzipSync(fs.readFileSync('documents.json'), {level: 3});
  total += JSON.parse(zlib.gunzipSync(packed).toString()).length;
}
console.log('buffers', total);
