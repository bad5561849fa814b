-- What wrk does beside loading: it says in one line of JSON what it saw.
--
--   wrk ... -s wrk.lua URL -- SIZE totals|every
--
-- A global function named response makes wrk give the status, the headers and
-- the body of every answer to Lua, whatever the function does with them; so it
-- is there only where it is wanted.
local threads = {}

function setup(thread)
  threads[#threads + 1] = thread
end

function init(args)
  local size = tonumber(args[1])
  wrong, status, length = 0, 0, 0 -- answers that are not as they must be, and the first of them
  if args[2] ~= "every" then return end
  function response(s, headers, body)
    if s ~= 200 or #body ~= size then
      wrong = wrong + 1
      if wrong == 1 then status, length = s, #body end
    end
  end
end

function done(summary, latency, requests)
  io.stderr:write("TARE done\n") -- from now on a signal could cut off what is printed
  local w, s, l = 0, 0, 0
  for _, t in ipairs(threads) do
    local n = t:get("wrong")
    w = w + n
    if n > 0 then s, l = t:get("status"), t:get("length") end
  end
  local pairs = {}
  for i = 1, #latency do
    local value, count = latency(i)
    pairs[i] = string.format("[%d,%d]", value, count)
  end
  local e = summary.errors
  io.write(string.format('\nTARE {"duration_us":%d,"requests":%d,"bytes":%d,' ..
    '"errors":{"connect":%d,"read":%d,"write":%d,"status":%d,"timeout":%d},' ..
    '"wrong":%d,"wrong_status":%d,"wrong_length":%d,"latency_us":[%s]}\n',
    summary.duration, summary.requests, summary.bytes,
    e.connect, e.read, e.write, e.status, e.timeout, w, s, l, table.concat(pairs, ",")))
end
