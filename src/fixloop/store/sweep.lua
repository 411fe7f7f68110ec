-- One shard's housekeeping: the clock, due deadlines, expired leases, finished delays, lost hints.
-- One sweeper at a time has a shard. A call handles at most `most` items of each kind; its cost depends on their
-- number.

local owner, lease, horizon, most = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local most_due, prefix, empty_lanes = tonumber(ARGV[5]), ARGV[6], cjson.decode(ARGV[7])

local clock, wall, away, turned, swept = read_clock()
local shard = as_table(redis.call('HGETALL', SHARD))
-- A lease that ends later than possible is from another clock: this one was turned back, or a replica took over.
local rest = tonumber(shard['until'] or 0) - wall
if shard.sweeper and shard.sweeper ~= owner and rest > 0 and rest <= lease then
  return {0, seconds(wall), seconds(clock), seconds(away), '0', {}, {}, {}, {}, {}, {}}
end

-- The engine's clock does not jump here: the wall time beyond AWAY_AFTER is added to `away`.
local gap = wall - swept
if gap > AWAY_AFTER then away = away + gap - AWAY_AFTER end
if gap < 0 then turned = turned + gap end
redis.call('HSET', SHARD, 'swept', seconds(wall), 'away', seconds(away), 'turned', seconds(turned),
  'sweeper', owner, 'until', seconds(wall + lease))
clock = wall - away - turned

local function workflow_key(ticket)
  return prefix .. string.match(ticket, '^[^.]*')
end

-- Damage of one workflow must not keep items of others from being handed out. If it makes the script fail, the workflow
-- is reported and checked again later. Members that belong to no workflow are dropped.
local damaged = {}

local function try(id, act)
  local is_done = pcall(act)
  if not is_done then damaged[#damaged + 1] = string.match(id, '^[^.|]*') end
  return is_done
end

-- The running deadlines: none of a paused workflow, and not the limits of unclaimed tickets.
local function running_deadlines(hash)
  local running, is_claimed = {}, {}
  if hash.parked then return running end
  for name, value in pairs(hash) do
    local state = string.sub(name, 1, 2) == 's:' and read_state(value)
    if state and state.limit then is_claimed[state.limit] = is_claimed[state.limit] or state.kind == 'c' end
  end
  for name, value in pairs(hash) do
    local kind, rest = string.sub(name, 1, 2), string.sub(name, 3)
    if kind == 'd:' and is_claimed[rest] ~= false then running[rest] = value end
  end
  return running
end

-- A due deadline is handed out again after SEND_AGAIN seconds, unless a commit has removed it. The score is `horizon`
-- later, as far as the next sweep looks ahead. A deadline before `looked`, the current score, was handed out.
local function hand_out(workflow, looked, due)
  local next_look
  for name, at in pairs(running_deadlines(as_table(redis.call('HGETALL', prefix .. workflow)))) do
    local look, is_new = tonumber(at), tonumber(at) >= looked
    if look <= clock + horizon then
      if is_new or look + SEND_AGAIN <= clock then
        due[#due + 1] = {workflow, name, at}
        look = math.max(look, clock)
      end
      look = look + SEND_AGAIN + horizon
    end
    next_look = math.min(next_look or look, look)
  end
  if next_look then redis.call('ZADD', DUE, seconds(next_look), workflow) else redis.call('ZREM', DUE, workflow) end
end

local function due_deadlines()
  local due = {}
  local range = redis.call('ZRANGEBYSCORE', DUE, '-inf', clock + horizon, 'WITHSCORES', 'LIMIT', 0, most_due)
  for i = 1, #range, 2 do
    local workflow, looked = range[i], tonumber(range[i + 1])
    local is_done = try(workflow, function() hand_out(workflow, looked, due) end)
    if not is_done then redis.call('ZADD', DUE, clock + DAMAGED_AGAIN + horizon, workflow) end
  end
  return due
end

-- A ticket whose lease ran out keeps its fence: if its holder was only slow, its renewal or commit still counts.
local function offer_again(id, state, found)
  local key = workflow_key(id)
  if redis.call('HGET', key, 'parked') then
    hold_back(key, id, state)
    return
  end
  local text = redis.call('HGET', key, 't:' .. id)
  local member = offer(cjson.decode(text), clock, FIRST)
  redis.call('HSET', key, 's:' .. id, state_text('p', state.fence, state.owner, state.limit, member))
  found[#found + 1] = text
end

-- Offer a ticket again if it still exists.
local function offer_if_there(id, found)
  local is_done = try(id, function()
    local state = read_state(redis.call('HGET', workflow_key(id), 's:' .. id))
    if not state then return end
    if not state.kind then error('a state is five lines') end
    offer_again(id, state, found)
  end)
  if not is_done then redis.call('ZADD', DELAYED, clock + DAMAGED_AGAIN, id) end
end

local function lapsed_leases()
  local found = {}
  for _, id in ipairs(redis.call('ZRANGEBYSCORE', LEASES, '-inf', clock, 'LIMIT', 0, most)) do
    redis.call('ZREM', LEASES, id)
    redis.call('HDEL', OWNERS, id)
    offer_if_there(id, found)
  end
  return found
end

local function ended_delays()
  local found = {}
  for _, id in ipairs(redis.call('ZRANGEBYSCORE', DELAYED, '-inf', clock, 'LIMIT', 0, most)) do
    redis.call('ZREM', DELAYED, id)
    offer_if_there(id, found)
  end
  return found
end

-- In two steps, because offering a ticket again changes the lane served FIRST, which is judged in its earlier state.
local function hint_again(lost)
  local found = {}
  for _, each in ipairs(lost) do
    redis.call('ZREM', PENDING, each.member)
    if each.id then offer_if_there(each.id, found) end
  end
  return found
end

local lanes = {}

-- Numbers in a lane have no gaps, so the younger tickets that are no longer pending were claimed.
local function overtaken(lane, made, lost)
  local first, last = '[' .. lane .. '|', '[' .. lane .. '|~'
  local count = redis.call('ZLEXCOUNT', PENDING, first, last)
  if count == 0 then
    redis.call('HDEL', SHARD, 'made:' .. lane)
    return
  end
  lanes[#lanes + 1] = lane
  for place, member in ipairs(redis.call('ZRANGEBYLEX', PENDING, first, last, 'LIMIT', 0, most - #lost)) do
    local number, id = string.match(member, '^(%d+)|%d+|(.*)$', #lane + 2)
    if number and made - tonumber(number) - (count - place) < OVERTAKEN_BY then return end
    lost[#lost + 1] = {member = member, id = id}
    if id then lost[id] = true end
  end
end

local function alone_in_empty_lane(lane, lost)
  local first, last = '[' .. lane .. '|', '[' .. lane .. '|~'
  for _, member in ipairs(redis.call('ZRANGEBYLEX', PENDING, first, last, 'LIMIT', 0, most)) do
    local at, id = string.match(member, '^%d+|(%d+)|(.*)$', #lane + 2)
    local is_old = at and tonumber(at) < (clock - UNHEARD_AFTER) * 1000
    if #lost < most and is_old and not lost[id] then lost[#lost + 1] = {member = member, id = id} end
  end
end

local function unheard()
  local lost, names = {}, {}
  for name in pairs(shard) do names[#names + 1] = string.match(name, '^made:(.*)$') end
  table.sort(names)
  for _, lane in ipairs(names) do overtaken(lane, tonumber(shard['made:' .. lane]) or 0, lost) end
  for _, lane in ipairs(empty_lanes) do alone_in_empty_lane(lane, lost) end
  return hint_again(lost)
end

-- Older versions, which may still run, write each deadline by itself: `{workflow}|{name}`.
local old_deadlines = string.gsub(DUE, 'due$', 'deadlines')
for _, member in ipairs(redis.call('ZRANGE', old_deadlines, 0, most)) do
  redis.call('ZADD', DUE, 0, string.match(member, '^[^|]*'))
  redis.call('ZREM', old_deadlines, member)
end

-- Lanes first: their numbers were read before this sweep offered anything. Deadlines last: the limit of a ticket whose
-- lease ran out is not due.
local lost = unheard()
local lapsed = lapsed_leases()
local ready = ended_delays()
return {1, seconds(wall), seconds(clock), seconds(away), seconds(gap > AWAY_AFTER and gap or 0),
  due_deadlines(), lapsed, ready, lost, lanes, damaged}
