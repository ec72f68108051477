"""What Redis does in one step, as scripts: nobody else is served while one runs.

Of one table of records (`<prefix>:{view}:<incarnation>`, the base of all names here):

    <base>            hash: position, floor and time of each stream; how many records there are
    <base>:dead       sorted set: the keys of tombstones
    <base>:r:<_key>   hash, a record: now (JSON), cn, dead; was, was_cn, was_dead
                      kept from the update log: now, dead, s:<sum>, e:<stream>

A script that finds no `<base>` does nothing: these records are not the ones that are kept any more.
All names of a view have one hash tag, so that a cluster keeps them in one place.
"""

from __future__ import annotations

GONE = "STEADYVIEW_GONE"
_HERE = f"""
if redis.call('EXISTS', KEYS[1]) == 0 then return redis.error_reply('{GONE}') end
local base = KEYS[1]
local function bury(record, key, there)
  redis.call('ZADD', base .. ':dead', 0, key)
  if there then redis.call('HINCRBY', base, 'records', -1) end
end
local function wake(record, key, there)
  redis.call('ZREM', base .. ':dead', key)
  if not there then redis.call('HINCRBY', base, 'records', 1) end
end
"""

BEGIN = """
local warehouse = redis.call('HGET', KEYS[1], 'warehouse')
if warehouse and warehouse ~= ARGV[1] then return -1 end
redis.call('HSET', KEYS[1], 'warehouse', ARGV[1])
local last = redis.call('HINCRBY', KEYS[1], 'last', 1)
redis.call('HSET', KEYS[1], 'node:' .. last, ARGV[2], 'layout:' .. last, ARGV[3],
  'rebuilt', ARGV[4])
redis.call('HSETNX', KEYS[1], 'incarnation', 0)
redis.call('SADD', KEYS[2], ARGV[5])
redis.call('HSET', KEYS[1] .. ':' .. last, 'records', 0, 'position:changes', -1,
  'floor:changes', -1, 'time:changes', 0)
return last
"""
"""A new incarnation, its number; -1: another warehouse serves a view of that name."""

SWITCH = """
local old = redis.call('HGET', KEYS[1], 'incarnation')
redis.call('HSET', KEYS[1], 'incarnation', ARGV[1], 'wanted', 0)
redis.call('HDEL', KEYS[1], 'error')
local stream = ARGV[2]
redis.call('HSET', KEYS[1] .. ':' .. ARGV[1], 'position:' .. stream, ARGV[3],
  'time:' .. stream, ARGV[4], 'floor:' .. stream, ARGV[5])
if old ~= ARGV[1] then redis.call('DEL', KEYS[1] .. ':' .. old) end
return 1
"""

MOVE = (
    _HERE
    + """
local now = tonumber(redis.call('HGET', base, 'position:' .. ARGV[1]) or 0)
if now <= tonumber(ARGV[2]) then
  redis.call('HSET', base, 'position:' .. ARGV[1], ARGV[2], 'time:' .. ARGV[1], ARGV[3])
end
redis.call('HSETNX', base, 'floor:' .. ARGV[1], 0)
return 1
"""
)

UPSERT = (
    _HERE
    + """
local floor = tonumber(redis.call('HGET', base, 'floor:changes'))
local position = tonumber(redis.call('HGET', base, 'position:changes'))
for i = 1, #ARGV, 4 do
  local key, cn = ARGV[i], tonumber(ARGV[i + 1])
  local record = base .. ':r:' .. key
  local old = redis.call('HMGET', record, 'cn', 'dead', 'now')
  local stored = tonumber(old[1] or nil)
  if (not stored and cn > floor) or (stored and stored < cn) then
    local there = stored and old[2] == '0'
    if stored and stored <= position then
      redis.call('HSET', record, 'was', old[3] or 'null', 'was_cn', old[1], 'was_dead', old[2])
    end
    redis.call('HSET', record, 'cn', ARGV[i + 1], 'dead', ARGV[i + 2], 'now', ARGV[i + 3])
    if ARGV[i + 2] == '1' then bury(record, key, there) else wake(record, key, there) end
  end
end
return 1
"""
)
"""Arguments: key, cn, dead and JSON of each record."""

RECLAIM = (
    _HERE
    + """
local stream, floor = ARGV[1], tonumber(ARGV[2])
if tonumber(redis.call('HGET', base, 'floor:' .. stream) or 0) < floor then
  redis.call('HSET', base, 'floor:' .. stream, ARGV[2])
end
local found = redis.call('ZSCAN', base .. ':dead', ARGV[3], 'COUNT', 500)
local dropped = 0
for i = 1, #found[2], 2 do
  local key = found[2][i]
  local record = base .. ':r:' .. key
  local fields = redis.call('HGETALL', record)
  local covered = true
  for j = 1, #fields, 2 do
    local name, value = fields[j], tonumber(fields[j + 1])
    if name == 'cn' then
      covered = covered and value <= tonumber(redis.call('HGET', base, 'floor:changes'))
    elseif string.sub(name, 1, 2) == 'e:' then
      local its = redis.call('HGET', base, 'floor:' .. string.sub(name, 3))
      covered = covered and value <= tonumber(its or 0)
    end
  end
  if covered then
    redis.call('DEL', record)
    redis.call('ZREM', base .. ':dead', key)
    dropped = dropped + 1
  end
end
return {found[1], dropped}
"""
)
"""Some of the tombstones, from a cursor on; the next cursor, and how many were dropped."""

_SIGNED = """
local function floors()
  local found = {}
  local fields = redis.call('HGETALL', base)
  for i = 1, #fields, 2 do
    if string.sub(fields[i], 1, 6) == 'floor:' and tonumber(fields[i + 1]) > 0 then
      found[string.sub(fields[i], 7)] = fields[i + 1]
    end
  end
  return found
end
local function start(record)
  for stream, floor in pairs(floors()) do redis.call('HSET', record, 'e:' .. stream, floor) end
end
local function seen(record, stream, dead)
  if dead then return redis.call('HGET', record, 'e:' .. stream) or '0' end
  return redis.call('HGET', base, 'floor:' .. stream) or '0'
end
"""

ADD = (
    _HERE
    + _SIGNED
    + """
local stream, names = ARGV[1], cjson.decode(ARGV[2])
local width = #names + 2
for i = 3, #ARGV, width do
  local key, entry = ARGV[i], ARGV[i + 1]
  local record = base .. ':r:' .. key
  local dead = redis.call('HGET', record, 'dead')
  if tonumber(seen(record, stream, dead)) < tonumber(entry) then
    local rows = 0
    for j = 1, #names do
      local field, amount = 's:' .. names[j], ARGV[i + 1 + j]
      local now = redis.pcall('HINCRBY', record, field, amount)
      if type(now) == 'table' then
        for k = 1, j - 1 do
          local back = ARGV[i + 1 + k]
          back = string.sub(back, 1, 1) == '-' and string.sub(back, 2) or '-' .. back
          redis.call('HINCRBY', record, 's:' .. names[k], back)
        end
        return now
      end
      if names[j] == '_rows' then rows = now end
    end
    if not dead then start(record) end
    redis.call('HSET', record, 'e:' .. stream, entry, 'dead', rows == 0 and 1 or 0)
    if rows == 0 then bury(record, key, dead == '0') else wake(record, key, dead == '0') end
  end
end
return 1
"""
)
"""Arguments: stream, names of sums, then key, entry and amounts of each addition."""

PUT = (
    _HERE
    + _SIGNED
    + """
for i = 2, #ARGV, 4 do
  local key, entry = ARGV[i], ARGV[i + 1]
  local record = base .. ':r:' .. key
  local dead = redis.call('HGET', record, 'dead')
  if tonumber(seen(record, ARGV[1], dead)) < tonumber(entry) then
    if not dead then start(record) end
    redis.call('HSET', record, 'e:' .. ARGV[1], entry, 'dead', ARGV[i + 2], 'now', ARGV[i + 3])
    if ARGV[i + 2] == '1' then bury(record, key, dead == '0')
    else wake(record, key, dead == '0') end
  end
end
return 1
"""
)
"""Arguments: stream, then key, entry, dead and JSON of each."""

TEST_AND_SET = (
    _HERE
    + _SIGNED
    + """
local key, there = ARGV[1], ARGV[2] == '1'
local expected, new = cjson.decode(ARGV[3]), cjson.decode(ARGV[4])
local record = base .. ':r:' .. key
local dead = redis.call('HGET', record, 'dead')
local now = {}
if dead then
  local fields = redis.call('HGETALL', record)
  for i = 1, #fields, 2 do
    if string.sub(fields[i], 1, 2) == 'e:' then now[string.sub(fields[i], 3)] = fields[i + 1] end
  end
else
  now = floors()
end
if there ~= (dead == '0') then return 0 end
for stream, entry in pairs(expected) do if now[stream] ~= entry then return 0 end end
for stream, entry in pairs(now) do if expected[stream] ~= entry then return 0 end end
redis.call('DEL', record)
for stream, entry in pairs(new) do redis.call('HSET', record, 'e:' .. stream, entry) end
redis.call('HSET', record, 'dead', ARGV[5], 'now', ARGV[6])
local sums = cjson.decode(ARGV[7])
for name, amount in pairs(sums) do redis.call('HSET', record, 's:' .. name, amount) end
if ARGV[5] == '1' then bury(record, key, there) else wake(record, key, there) end
return 1
"""
)
"""Arguments: key, there, expected, new, dead, JSON, sums; entries and sums as texts."""
