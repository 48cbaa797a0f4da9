-- Counts calls against rates and quotas, all or nothing. ARGV[1] holds items,
-- KEYS their keys in order. Everything is little endian.
--   item:  u16 calls, u16 portion, u8 limits, per limit u8 kind (0 quota,
--          1 rate), f64 max, f64 period in microseconds, f64 calls a group may hold
--   reply: u16 granted, u8 index that refused (255 none, 254 not a counter),
--          per limit f64 free before the item, f64 reset: of a quota its expiry
--          in unix milliseconds (-1 never, -2 none open), of a rate the
--          milliseconds until a call is freed
-- Calls are granted in whole portions, as many as fit.
-- An error inside a script does not undo what it wrote, so an item reads and
-- checks all its keys before it writes the first.
local call, try, get, put, sub, find, min = redis.call, redis.pcall, struct.unpack, struct.pack, string.sub, string.find, math.min
local a, pos, base, now, out, KEYS = ARGV[1], 1, 0, nil, {}, KEYS
local kinds, maxs, pers, sizes, values, useds, moved = {}, {}, {}, {}, {}, {}, {} -- what the reading half found, by limit
while pos <= #a do
  local refused, grant, portion, count = 255
  grant, portion, count, pos = get('<HHB', a, pos)
  for i = 1, count do
    local s, used, dirty, kind, max, per, size = try('GET', KEYS[base + i]), 0, false
    kind, max, per, size, pos = get('<Bddd', a, pos)
    if kind == 1 and not now then local t = call('TIME'); now = t[1] * 1e6 + t[2] end
    if kind == 0 then -- a quota: an integer that expires
      if type(s) == 'string' and find(s, '^%-?%d+$') then used = tonumber(s)
      elseif s then used = nil end
    elseif not s then s = '' -- a rate: u32 total, then groups of f64 last time, u32 calls
    elseif type(s) ~= 'string' or #s < 16 or #s % 12 ~= 4 then used = nil
    else
      local late, p, c, t = get('<d', s, #s - 11) - now, 5
      if late > 0 then -- the clock stepped back: move the times, keep the ages
        local parts = { sub(s, 1, 4) }
        for q = 5, #s, 12 do t, c = get('<dI4', s, q); parts[#parts + 1] = put('<dI4', t - late, c) end
        s, dirty = table.concat(parts), true
      end
      used, t, c = get('<I4dI4', s)
      while t + per <= now do -- the oldest groups leave
        used, p = used - c, p + 12
        if p > #s then break end
        t, c = get('<dI4', s, p)
      end
      s = sub(s, p)
    end
    if not used then grant, refused, used, s = 0, 254, max, '' end
    local free = math.max(max - used, 0)
    if free < grant then grant, refused = free - free % portion, i - 1 end
    kinds[i], maxs[i], pers[i], sizes[i], values[i], useds[i], moved[i] = kind, max, per, size, s, used, dirty
  end
  out[#out + 1] = put('<HB', grant, refused)
  for i = 1, count do
    local key, s, per, reset = KEYS[base + i], values[i], pers[i], 0
    if kinds[i] == 0 then
      if grant > 0 and s then call('INCRBY', key, grant)
      elseif grant > 0 and per > 0 then call('SET', key, grant, 'PX', per / 1000)
      elseif grant > 0 then call('SET', key, grant) end
      reset = call('PEXPIRETIME', key)
    else
      local size, rest = sizes[i], grant
      local c = size
      if #s > 0 then c = get('<I4', s, #s - 3) end
      local add = min(rest, size - c) -- the newest group fills first
      if add > 0 then s, rest = sub(s, 1, #s - 12) .. put('<dI4', now, c + add), rest - add end
      while rest > 0 do add = min(rest, size); s, rest = s .. put('<dI4', now, add), rest - add end
      if grant > 0 or moved[i] then
        call('SET', key, put('<I4', useds[i] + grant) .. s, 'PX', math.ceil(per / 1000) + 1)
      end
      if #s > 0 then reset = (get('<d', s) + per - now) / 1000 end
    end
    out[#out + 1] = put('<dd', maxs[i] - useds[i], reset)
  end
  base = base + count
end
return table.concat(out)
