-- SPDX-License-Identifier: MIT OR Apache-2.0
-- Strings of all lengths: made, concatenated, cut, replaced, found again in tables that grow and shrink.
local seed = 42
local function random(n)
  seed = (seed * 1103515245 + 12345) % 2147483648
  return seed // 65536 % n
end

local kept, total = {}, 0
for i = 1, 400000 do
  local s = ("ab"):rep(random(60)) .. i
  local key = random(20000)
  if kept[key] then total = total + #kept[key] end
  kept[key] = s:gsub("ba", "c", 3) .. s:sub(1, 5)
  if i % 3 == 0 then kept[random(20000)] = nil end
end
local parts = {}
for round = 1, 20 do
  for i = 1, 5000 do parts[i] = tostring(i * round) end
  local joined = table.concat(parts, ",")
  for word in joined:gmatch("[^,]+") do total = total + #word end
end
print("strings", total)
