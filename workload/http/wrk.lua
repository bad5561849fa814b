-- What wrk does beside loading: it says in one line of JSON what it saw.
--
--   TARE_AT="ADDRESS PORT" wrk ... -s wrk.lua URL -- SIZE totals|every KEEP-ALIVE DELAY HOSTS
--
-- KEEP-ALIVE is true or false. DELAY is the longest pause before a request, in
-- milliseconds. HOSTS are names for the header Host, joined by commas, each perhaps
-- with a path behind it. SIZE is -1 if it is not known. With TARE_AT, wrk connects to that
-- address, and the host of the URL is only the name in the TLS handshake.
--
-- A global function named response makes wrk give the status, the headers and
-- the body of every answer to Lua, whatever the function does with them; so it
-- is there only where it is wanted. The same holds for request and delay.
local threads = {}

local at, port = string.match(os.getenv("TARE_AT") or "", "^(%S+) (%d+)$")
if at then
  local resolve = wrk.resolve
  function wrk.resolve() resolve(at, port) end
end

function setup(thread)
  threads[#threads + 1] = thread
end

function init(args)
  local size = tonumber(args[1])
  wrong, status, length = 0, 0, 0 -- answers that are not as they must be, and the first of them
  if args[3] == "false" then wrk.headers["Connection"] = "close" end
  local longest = tonumber(args[4] or "0")
  if longest > 0 then
    function delay() return math.random(0, longest) end
  end
  local requests = {}
  for host in string.gmatch(args[5] or "", "[^,]+") do
    local name, path = string.match(host, "^([^/]*)(/.*)$")
    wrk.headers["Host"] = name or host
    wrk.path = path or wrk.path
    requests[#requests + 1] = wrk.format()
  end
  if #requests > 1 then
    local last = 0
    function request()
      last = last % #requests + 1
      return requests[last]
    end
  end
  if args[2] ~= "every" then return end
  function response(s, headers, body)
    if s ~= 200 or size >= 0 and #body ~= size then
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
