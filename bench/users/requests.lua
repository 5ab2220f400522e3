-- SPDX-License-Identifier: MIT OR Apache-2.0
-- For wrk: GET /N, N drawn from 1 to COUNT, each as often as any other.
local count = tonumber(os.getenv("COUNT"))
function init(args)
  math.randomseed(7)
end
function request()
  return wrk.format("GET", "/" .. math.random(count))
end
