-- Prepended to every script of a shard: its keys, the engine's clock, the state of a ticket.
-- KEYS are always those of keys.ShardKeys in order, then the script's own.
-- AWAY_AFTER and the other names in capitals are prepended to this text from limits.py.

local SHARD, PENDING, LEASES, OWNERS, DUE, DELAYED, LIVE, WORKFLOWS = unpack(KEYS)

local function seconds(number)
  return string.format('%.6f', number)
end

-- The engine's clock stops AWAY_AFTER seconds after the last sweep until the next one. Before the first sweep it runs.
-- `turned` compensates for a wall clock that was turned back. A script has one time.
local clock_read
local function read_clock()
  if clock_read then return unpack(clock_read) end
  local time = redis.call('TIME')
  local wall = tonumber(time[1]) + tonumber(time[2]) / 1000000
  local known = redis.call('HMGET', SHARD, 'away', 'turned', 'swept')
  local away, turned = tonumber(known[1] or 0), tonumber(known[2] or 0)
  local now = wall
  if known[3] then
    local swept = tonumber(known[3])
    now = math.max(swept, math.min(wall, swept + AWAY_AFTER))
  end
  clock_read = {now - away - turned, wall, away, turned, tonumber(known[3] or wall)}
  return unpack(clock_read)
end

-- Announce to the shard's readers that a workflow has this version; 0: it was removed. If that fails, the change is
-- made all the same.
local function announce(changes, workflow, version)
  local told = redis.pcall('XADD', changes, 'MAXLEN', '~', CHANGES_KEPT, '*', 'w', workflow, 'v', version)
  -- A key that is no stream is deleted; the readers start again.
  if type(told) == 'table' and told.err then redis.pcall('DEL', changes) end
end

-- A ticket's state is five lines: kind (p, c, d), fence, owner, name of its limit, and a value that depends on the
-- kind: the member of PENDING, the claim's token, or the time before which it cannot be claimed.
local function read_state(text)
  if not text then return nil end
  local kind, fence, owner, limit, rest = string.match(text, '^(%a)\n(%d+)\n([^\n]*)\n([^\n]*)\n(.*)$')
  return {kind = kind, fence = fence, owner = owner, limit = limit, rest = rest}
end

local function state_text(kind, fence, owner, limit, rest)
  return table.concat({kind, fence, owner, limit, rest}, '\n')
end

-- Tickets are numbered in each lane, so that the oldest ticket alone shows how many younger ones were claimed.
-- A ticket that is offered again goes into the lane that is served FIRST, not to the end of its own lane.
local function offer(ticket, clock, priority)
  local lane = ticket.queue .. '|' .. (priority or ticket.priority)
  local number = redis.call('HINCRBY', SHARD, 'made:' .. lane, 1)
  local member = string.format('%s|%012d|%015d|%s', lane, number, clock * 1000, ticket.id)
  redis.call('ZADD', PENDING, 0, member)
  return member
end

-- A held ticket is delayed for ever, until its workflow continues; it keeps its fence, even if its owner was lost.
local FOR_EVER = '9007199254740991'

local function hold_back(key, id, state)
  if state.kind == 'p' then redis.call('ZREM', PENDING, state.rest) end
  redis.call('ZADD', DELAYED, FOR_EVER, id)
  redis.call('HSET', key, 's:' .. id, state_text('d', state.fence, state.owner, state.limit, FOR_EVER))
end

-- The sweeper looks at a workflow no later than its earliest deadline, and works out which of its deadlines run. So
-- nothing has to be done here when a deadline is removed or stands still.
local function look_at(workflow, due)
  redis.call('ZADD', DUE, 'LT', seconds(due), workflow)
end

local function as_table(flat)
  local found = {}
  for i = 1, #flat, 2 do found[flat[i]] = flat[i + 1] end
  return found
end

local OWN = {version = true, head = true, snapshot = true, done = true, stale = true, parked = true, began = true}

local function plain_fields(hash)
  local plain = {}
  for name, value in pairs(hash) do
    if not OWN[name] and not string.find(name, ':', 1, true) then plain[name] = value end
  end
  return cjson.encode(plain)
end

-- The entries that a snapshot was packed with: its first line has their numbers (packing.py).
local function leant_on(snapshot, history)
  local found = {}
  local numbers = string.match(snapshot or '', '^[\1-\9]([%d,]*)\n')
  for number in string.gmatch(numbers or '', '%d+') do
    found[#found + 1] = redis.call('LINDEX', history, number - 1) or ''
  end
  return found
end

-- A head is 32 bytes; older versions stored it in hex.
local function head_of(text)
  if not text or #text < 64 then return text or '' end
  return (string.gsub(text, '%x%x', function(two) return string.char(tonumber(two, 16)) end))
end
