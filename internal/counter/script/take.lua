-- Counts calls against rates and quotas, all or nothing. ARGV[1] holds items,
-- KEYS their keys in order. Everything is little endian.
--   head:  u8 repeats (1: a key may stand in several items), u8 shapes, and per
--          shape u8 limits, per limit u8 kind (0 quota, 1 rate), f64 max, f64
--          period in microseconds, f64 calls a group may hold
--   items: u16 how many in turn, and of each of them u16 calls, u16 portion, u8
--          shape from 1, u8 ask (1: tell when the periods of its quotas end)
--   reply: f64 granted × 256 + index that refused (255 none, 254 not a
--          counter), per limit f64 free before the item, f64 reset: of a quota
--          its expiry in unix milliseconds (-1 never, -2 none open, -3 open
--          before and not asked), of a rate the milliseconds until a call is freed
--          or, of what nearly all items are, -1 - f64 free of the rate, f64 free of
--          the quota if there is one: all was granted, the reset of the rate is its
--          period, and of the quota -3
--   rate:  u32 calls held, f64 minus its expiry in unix microseconds, u32 0,
--          then groups of f64 last time, u32 calls. To a version before this
--          the expiry looks like a group that left long ago; values of such a
--          version have none, and get one when they are written.
-- Calls are granted in whole portions, as many as fit.
-- An error inside a script does not undo what it wrote, so an item reads and
-- checks all its keys before it writes the first. A command costs as much as all
-- the arithmetic of an item: hence one MGET, and no expiry that is known is read
-- or written. SETRANGE keeps the expiry, writes in place and answers with a
-- number, for two thirds of what SET costs with KEEPTTL; but it cannot shorten a
-- value, and one that it lengthens takes twice the room.
local call, try, get, put, sub, find = redis.call, redis.pcall, struct.unpack, struct.pack, string.sub, string.find
local type, tonumber = type, tonumber
local a, keys, base, now, out, top = ARGV[1], KEYS, 0, nil, {}, 0
local shapes, repeats, count, pos = {}, get('<BB', a)
for i = 1, count do
  local limits, n = {}
  n, pos = get('<B', a, pos)
  for j = 1, n do
    local l = {}
    l.kind, l.max, l.per, l.size, pos = get('<Bddd', a, pos)
    if l.kind == 1 and not now then local t = call('TIME'); now = t[1] * 1e6 + t[2] end
    limits[j] = l
  end
  limits.common = n > 0 and limits[1].kind == 1 and (n == 1 or n == 2 and limits[2].kind == 0)
  shapes[i] = limits
end

-- moved is the groups of s from p on, earlier by late.
local function moved(s, p, late)
  local parts = {}
  for q = p, #s, 12 do
    local t, c = get('<dI4', s, q)
    parts[#parts + 1] = put('<dI4', t - late, c)
  end
  return table.concat(parts)
end

-- expiry is when a rate that is written now is to expire, in microseconds: late
-- enough that most writes need not set it again.
local function expiry(per)
  local slack = per
  if slack < 1e7 then slack = 1e7 elseif slack > 3.6e9 then slack = 3.6e9 end
  return math.ceil((now + per + slack) / 1000) * 1000
end

-- digits spares the store from formatting the commonest number.
local function digits(n) return n == 1 and '1' or n end

local found, from
if repeats == 0 then found, from = call('MGET', unpack(keys)), 0 end
-- What the reading half of an item found, by limit; of rates also the expiry,
-- where the groups begin, the calls of the newest, the time of the oldest, and
-- whether the clock stepped back.
local values, useds, ends, starts, lasts, olds, backs = {}, {}, {}, {}, {}, {}, {}

-- item counts the item whose keys begin after base, whatever is there.
local function item(grant, portion, limits, ask)
  local n, refused = #limits, 255
  if repeats == 1 then found, from = call('MGET', unpack(keys, base + 1, base + n)), base end
  for i = 1, n do
    local l, s, used = limits[i], found[base - from + i], 0
    if not s then -- nothing, or what is no string
      if call('EXISTS', keys[base + i]) == 1 then used = nil end
      ends[i] = 0
    elseif l.kind == 0 then -- a quota: an integer that expires
      if #s <= 17 and find(s, '^%-?[1-9]%d*$') or s == '0' then used = s + 0 else used = nil end
    elseif #s < 16 or #s % 12 ~= 4 then used = nil
    else
      local per, p, till, t, c, zero = l.per, 5, 0
      if #s >= 28 then used, till, zero, t, c = get('<I4dI4dI4', s) end
      if zero == 0 then till, p = -till, 17
      else
        till, used, t, c = 0, get('<I4dI4', s)
        if c == 0 then used = nil end
      end
      local newest, last, back = t, c, false
      if #s > p + 11 then newest, last = get('<dI4', s, #s - 11) end
      local late = newest - now
      if late > 0 then -- the clock stepped back: move the times, keep the ages
        s, p, t, back = moved(s, p, late), 1, t - late, true
      end
      while used and t + per <= now do -- the oldest groups leave
        used, p = used - c, p + 12
        if p > #s then s = false; break end
        t, c = get('<dI4', s, p)
      end
      ends[i], starts[i], lasts[i], olds[i], backs[i] = till, p, last, t, back
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
      local tell = ask == 1
      if s then
        if grant > 0 then call('INCRBY', key, digits(grant)) end
      elseif grant > 0 then
        tell = true
        if per > 0 then call('SET', key, grant, 'PX', per / 1000) else call('SET', key, grant) end
      end
      if tell then reset = call('PEXPIRETIME', key) elseif s then reset = -3 else reset = -2 end
    else
      if grant > 0 or s and backs[i] then
        local groups, till, rest, add, c = '', ends[i], grant, 0, 0
        if s then
          c = lasts[i]
          add = l.size - c -- the newest group fills first
          if add > rest then add = rest elseif add < 0 then add = 0 end
          rest = rest - add
          local p = starts[i]
          if add == 0 then groups = sub(s, p)
          elseif #s > p + 11 then groups = sub(s, p, -13)
          else olds[i] = now end
        else olds[i] = now end
        local stays = till >= now + per
        if not stays then till = expiry(per) end
        if add > 0 and groups == '' then s = put('<I4dI4dI4', useds[i] + grant, -till, 0, now, c + add)
        else
          s = put('<I4dI4', useds[i] + grant, -till, 0) .. groups
          if add > 0 then s = s .. put('<dI4', now, c + add) end
        end
        while rest > 0 do
          add = l.size
          if add > rest then add = rest end
          s, rest = s .. put('<dI4', now, add), rest - add
        end
        if not stays then call('SET', key, s, 'PXAT', till / 1000)
        elseif #s == #found[base - from + i] then call('SETRANGE', key, '0', s)
        else call('SET', key, s, 'KEEPTTL') end
      end
      if s then reset = (olds[i] + per - now) / 1000 end
    end
    out[top + 1], out[top + 2] = l.max - useds[i], reset
    top = top + 2
  end
end

while pos <= #a do
  local many, calls, portion, shape, ask
  many, calls, portion, shape, ask, pos = get('<HHHBB', a, pos)
  local limits = shapes[shape]
  local step, quick, most, size, per, quota, by = #limits, false
  if limits.common and calls > 0 and repeats == 0 then
    local rate = limits[1]
    quick, most, size, per, quota, by = true, rate.max, rate.size, rate.per, step == 2 and limits[2].max, digits(calls)
  end
  for _ = 1, many do
    local done = false
    -- What nearly all items are, in far fewer steps: a rate, mostly with a quota,
    -- in use and with room for all of the calls, the rate one group that is
    -- neither over nor full and expires late enough. item would do just the same.
    -- Whether a quota is a counter the store says, in less time than find takes.
    if quick then
      local s, q = found[base + 1], quota and found[base + 2]
      if s and #s == 28 and (not quota or q and #q <= 17) then
        local used, minus, zero, last, c = get('<I4dI4dI4', s)
        local free, left = most - used, calls
        if quota then left = quota - (tonumber(q) or quota) end
        if free >= calls and left >= calls and c + calls <= size
          and zero == 0 and -minus >= now + per and last + per > now
          and (not quota or type(try('INCRBY', keys[base + 2], by)) == 'number') then
          call('SETRANGE', keys[base + 1], '0', put('<I4dI4dI4', used + calls, minus, 0, now, c + calls))
          if quota and ask == 1 then
            out[top + 1], out[top + 2], out[top + 3] = calls * 256 + 255, free, per / 1000
            out[top + 4], out[top + 5] = left, call('PEXPIRETIME', keys[base + 2])
            top = top + 5
          else
            out[top + 1] = -1 - free
            if quota then out[top + 2] = left end
            top = top + step
          end
          done = true
        end
      end
    end
    if not done then item(calls, portion, limits, ask) end
    base = base + step
  end
end
return put('<' .. string.rep('d', top), unpack(out))
