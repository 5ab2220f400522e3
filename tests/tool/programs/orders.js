// SPDX-License-Identifier: MIT OR Apache-2.0
// Holds 20 MiB by one function, for tests of `terrace profile`.
const kept = [];

function makeOrder(i) {
  return Buffer.allocUnsafeSlow((40 << 10) + (i % 3));
}

class Shop {
  takeOrders() {
    for (let i = 0; i < 512; ++i) kept.push(makeOrder(i));
  }
}

new Shop().takeOrders();
console.log('ready');
process.stdin.on('end', () => process.exit(0)).resume();
