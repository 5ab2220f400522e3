/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Does nothing, so that all the time it takes is start-up and end. */
int main(void) { return 0; }
