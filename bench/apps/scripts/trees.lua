-- SPDX-License-Identifier: MIT OR Apache-2.0
-- Binary trees of several depths, made and walked again and again while a large one stays.
local function tree(depth)
  if depth == 0 then return {} end
  return {tree(depth - 1), tree(depth - 1)}
end

local function count(t)
  if not t[1] then return 1 end
  return 1 + count(t[1]) + count(t[2])
end

local long_lived = tree(18)
local total = 0
for depth = 4, 16, 2 do
  for _ = 1, 1 << (18 - depth) do total = total + count(tree(depth)) end
end
print("trees", total, count(long_lived))
