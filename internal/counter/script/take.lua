-- Counts calls against rates and quotas, all or nothing. ARGV[1] holds items,
-- KEYS their keys in order. Everything is little endian.
--   head:  u8 repeats (1: a key may stand in several items), u8 shapes, and per
--          shape u8 limits, per limit u8 kind (0 quota, 1 rate), f64 max, f64
--          period in microseconds, f64 calls a group may hold
--   item:  u16 calls, u16 portion, u8 shape, u8 ask (1: tell quotas' expiry)
--   reply: f64 granted × 256 + index that refused (255 none, 254 not a
--          counter), per limit f64 free before the item, f64 reset: of a quota
--          its expiry in unix milliseconds (-1 never, -2 none open, -3 open but
--          not asked), of a rate the milliseconds until a call is freed
-- Calls are granted in whole portions, as many as fit.
-- An error inside a script does not undo what it wrote, so an item reads and
-- checks all its keys before it writes the first. Each call of a command costs
-- about as much as all the arithmetic of an item: hence one MGET, and no
-- expiry read or written that is known.
local call, get, put, sub, find = redis.call, struct.unpack, struct.pack, string.sub, string.find
local a, keys, base, now, out, top = ARGV[1], KEYS, 0, nil, {}, 0
local repeats, count, pos = get('<BB', a)
local shapes = {}
for i = 1, count do
  local limits, n = {}
  n, pos = get('<B', a, pos)
  for j = 1, n do
    local l = {}
    l.kind, l.max, l.per, l.size, pos = get('<Bddd', a, pos)
    if l.kind == 1 and not now then local t = call('TIME'); now = t[1] * 1e6 + t[2] end
    limits[j] = l
  end
  shapes[i] = limits
end
local found, from
if repeats == 0 then found, from = call('MGET', unpack(keys)), 0 end
local values, useds, ends, starts, lasts, olds, moved = {}, {}, {}, {}, {}, {}, {} -- what the reading half found, by limit
while pos <= #a do
  local refused, grant, portion, shape, ask = 255
  grant, portion, shape, ask, pos = get('<HHBB', a, pos)
  local limits = shapes[shape]
  local n = #limits
  if repeats == 1 then found, from = call('MGET', unpack(keys, base + 1, base + n)), base end
  for i = 1, n do
    local l, s, used = limits[i], found[base - from + i], 0
    if not s then -- nothing, or what is no string
      if call('EXISTS', keys[base + i]) == 1 then used = nil end
      ends[i] = 0
    elseif l.kind == 0 then -- a quota: an integer that expires
      if #s <= 16 and (find(s, '^%-?[1-9]%d*$') or s == '0') then used = s + 0 else used = nil end
    elseif #s < 16 or #s % 12 ~= 4 then used = nil
    else
      -- a rate: u32 total, f64 minus its expiry, u32 0, then groups of f64 last
      -- time, u32 calls. Without an expiry it is by an older version.
      local per, size, p, t, c, till, newest, last = l.per, #s, 5
      used, t, c = get('<I4dI4', s)
      if c == 0 then
        till, p = -t, 17
        if size < 28 then used = nil else t, c = get('<dI4', s, 17) end
      else till = 0 end
      if used then
        newest, last = t, c
        if size > p + 11 then newest, last = get('<dI4', s, size - 11) end
        local late, dirty = newest - now, false
        if late > 0 then -- the clock stepped back: move the times, keep the ages
          local parts = {}
          for q = p, size, 12 do local u, d = get('<dI4', s, q); parts[#parts + 1] = put('<dI4', u - late, d) end
          s, p, t, dirty = table.concat(parts), 1, t - late, true
          size = #s
        end
        while t + per <= now do -- the oldest groups leave
          used, p = used - c, p + 12
          if p > size then s = false; break end
          t, c = get('<dI4', s, p)
        end
        ends[i], starts[i], lasts[i], olds[i], moved[i] = till, p, last, t, dirty
      end
    end
    if not used then grant, refused, used, s = 0, 254, l.max, false end
    local free = l.max - used
    if free < 0 then free = 0 end
    if free < grant then grant, refused = free - free % portion, i - 1 end
    values[i], useds[i] = s, used
  end
  top = top + 1
  out[top] = grant * 256 + refused
  for i = 1, n do
    local l, key, s, reset = limits[i], keys[base + i], values[i], 0
    local per = l.per
    if l.kind == 0 then
      reset = -3
      if s then
        if grant > 0 then call('INCRBY', key, grant) end
      elseif grant == 0 then reset = -2
      elseif per > 0 then ask = 1; call('SET', key, grant, 'PX', per / 1000)
      else reset = -1; call('SET', key, grant) end
      if ask == 1 then reset = call('PEXPIRETIME', key) end
    else
      if grant > 0 or s and moved[i] then
        local till, middle, rest, add, c = ends[i], '', grant, 0, 0
        if s then
          c = lasts[i]
          add = l.size - c -- the newest group fills first
          if add > rest then add = rest elseif add < 0 then add = 0 end
          local p = starts[i]
          if add == 0 then middle = sub(s, p)
          else
            if #s > p + 11 then middle = sub(s, p, -13) else olds[i] = now end
            rest = rest - add
          end
        else olds[i] = now end
        local stays = till >= now + per
        if not stays then
          local slack = per
          if slack < 1e7 then slack = 1e7 elseif slack > 3.6e9 then slack = 3.6e9 end
          till = math.ceil((now + per + slack) / 1000) * 1000
        end
        if add > 0 and middle == '' then middle = put('<I4dI4dI4', useds[i] + grant, -till, 0, now, c + add)
        else
          middle = put('<I4dI4', useds[i] + grant, -till, 0) .. middle
          if add > 0 then middle = middle .. put('<dI4', now, c + add) end
        end
        while rest > 0 do
          add = l.size
          if add > rest then add = rest end
          middle, rest = middle .. put('<dI4', now, add), rest - add
        end
        if stays then call('SET', key, middle, 'KEEPTTL') else call('SET', key, middle, 'PXAT', till / 1000) end
        s = middle
      end
      if s then reset = (olds[i] + per - now) / 1000 end
    end
    out[top + 1], out[top + 2] = l.max - useds[i], reset
    top = top + 2
  end
  base = base + n
end
return put('<' .. string.rep('d', top), unpack(out))
