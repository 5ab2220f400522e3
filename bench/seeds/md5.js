// SPDX-License-Identifier: MIT OR Apache-2.0
// md5.js COUNT: many short-lived md5 objects, each hashing a few bytes, and nothing else. Prints one line of JSON.
'use strict';
const {createHash} = require('crypto');

const count = Number(process.argv[2]);

function churn(n) {
  let digest = '';
  for (let i = 0; i < n; ++i) digest = createHash('md5').update(digest).update(String(i)).digest('hex');
  return digest;
}

churn(1000); // compiled before the clock starts
const begin = process.hrtime.bigint();
const digest = churn(count);
const seconds = Number(process.hrtime.bigint() - begin) / 1e9;
console.log(JSON.stringify({hashes_per_second: count / seconds, ns_per_hash: seconds * 1e9 / count, digest}));
