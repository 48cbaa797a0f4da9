-- Corrects quotas after the fact. ARGV[1] holds one item for each of KEYS,
-- little endian: u8 what, f64 calls, f64 reset in unix milliseconds (0 never),
-- f64 milliseconds until then. The reply has one byte for each: 1 done, 0 not.
--   0 refund: takes calls back from the period that ends at reset
--   1 debt: adds calls to the period that ends at reset, even beyond its max
--   2 debt of a period that was opened elsewhere: adds to whatever is open
--   3 floor: makes sure that at least calls are counted until reset
-- What is no counter is left alone, as take.lua does: an error would keep what
-- was written before it, and have all of it sent again.
local call, abs = redis.call, math.abs
local a, pos, out = ARGV[1], 1, {}
for i = 1, #KEYS do
  local key, what, calls, reset, rest, done = KEYS[i]
  what, calls, reset, rest, pos = struct.unpack('<Bddd', a, pos)
  local s = redis.pcall('GET', key)
  if not s or s == '0' or type(s) == 'string' and #s <= 17 and string.find(s, '^%-?[1-9]%d*$') then
    local ends = math.max(call('PEXPIRETIME', key), 0)
    if what == 0 then
      if s and ends == reset and tonumber(s) >= calls then done = call('DECRBY', key, calls) end
    elseif what == 3 then
      if s and tonumber(s) >= calls then done = s
      elseif reset > 0 then done = call('SET', key, calls, 'PXAT', reset)
      else done = call('SET', key, calls) end
    elseif s then
      if what == 2 or abs(ends - reset) <= 1000 then done = call('INCRBY', key, calls) end
    elseif what == 2 then
      if reset > 0 then done = call('SET', key, calls, 'PX', rest) else done = call('SET', key, calls) end
    end
  end
  out[i] = done and '\1' or '\0'
end
return table.concat(out)
