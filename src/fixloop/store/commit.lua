-- Commit one change of one workflow: compare, then write all of it or nothing. The script does not interpret changes.
-- All comparisons come before the first write. With the change, the committer may claim a ticket that it makes.
-- KEYS from 13 on, if others may go first: the pending sets of all shards.

local WORKFLOW, HISTORY, ENDED, CHANGES = KEYS[9], KEYS[10], KEYS[11], KEYS[12]
local change = cjson.decode(ARGV[1])
local snapshot, entry, expected_head, new_head = ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local local_part = #change.workflow + 2

local found = redis.call('HMGET', WORKFLOW, 'version', 'head', 'done', 's:' .. change.ticket, 'o:' .. change.operation, 'parked', 'began')
local version, head, done = tonumber(found[1] or 0), head_of(found[2]), found[3] or ''
local held, repeated = read_state(found[4]), found[5]

local function answer(status, other)
  return {status, version, head, '', other or '', {}, {}}
end

-- The claim on `change.claim`, apart from what the committer already has.
local function given(fence)
  local clock, wall, away = read_clock()
  redis.call('ZADD', LEASES, clock + change.lease, change.claim)
  return {fence, seconds(wall), seconds(clock), seconds(away)}
end

local function given_before()
  local state = change.claim ~= '' and read_state(redis.call('HGET', WORKFLOW, 's:' .. change.claim))
  local is_mine = state and state.kind == 'c' and state.owner == change.owner and state.rest == change.token
  return is_mine and given(state.fence) or {}
end

-- Repeat the first answer: its head is the digest of the entry that was written.
local function first_answer(made)
  return {'dup', tonumber(made), '', redis.call('LINDEX', HISTORY, made - 1) or '', '', {}, given_before()}
end

-- `done` has a line `{ticket} {fence} {version}` for each of the last tickets; a withdrawn ticket has the fence `-`.
local function line_of(id)
  return string.find(done, '\n' .. string.sub(id, local_part) .. ' ', 1, true)
end

local function finished(id)
  local from, to = line_of(id)
  if not from then return nil end
  return string.match(done, '^(%S+) (%d+)', to + 1)
end

local function finish(id, fence, made)
  local from, to = line_of(id)
  if from then done = string.sub(done, 1, from - 1) .. string.sub(done, string.find(done, '\n', to, true) or #done + 1) end
  done = done .. '\n' .. string.sub(id, local_part) .. ' ' .. fence .. ' ' .. made
  local _, lines = string.gsub(done, '\n', '')
  for _ = DONE_KEPT + 1, lines do done = string.match(done, '^\n[^\n]*(.*)$') end
end

if change.ticket ~= '' and not held then
  local fence, made = finished(change.ticket)
  if fence == '-' then
    redis.call('HINCRBY', WORKFLOW, 'stale', 1)
    return answer('stale')
  end
  if fence and fence == change.fence then return first_answer(made) end
  return answer('gone')
end
if held and (held.fence ~= change.fence or held.owner ~= change.owner) then
  redis.call('HINCRBY', WORKFLOW, 'stale', 1)
  return answer('stale')
end
if change.operation ~= '' and repeated then return first_answer(repeated) end
if version == 0 and change.expected > 0 then return answer('gone') end

local living = change.live ~= '' and redis.call('HGET', LIVE, change.feature) or false
-- The number identifies the workflow; older versions stored the whole id.
if living and not string.find(living, '-', 1, true) then living = change.feature .. '-' .. living end
if change.live == 'begin' and living and (living ~= change.workflow or change.expected == 0) then
  return answer('exists', living)
end
if version ~= change.expected or head ~= expected_head then
  local current = redis.call('HGET', WORKFLOW, 'snapshot') or ''
  return {'conflict', version, head, current, '', leant_on(current, HISTORY), {}}
end

local made = version + 1
local removed = {}

local function take_away(id, state)
  if state.kind == 'c' then
    redis.call('ZREM', LEASES, id)
    redis.call('HDEL', OWNERS, id)
  elseif state.kind == 'p' then
    redis.call('ZREM', PENDING, state.rest)
  else
    redis.call('ZREM', DELAYED, id)
  end
  if state.limit ~= '' then removed[#removed + 1] = 'd:' .. state.limit end
  for _, field in ipairs({'t:', 's:', 'n:'}) do removed[#removed + 1] = field .. id end
end

local function withdraw(id)
  local state = id ~= change.ticket and read_state(redis.call('HGET', WORKFLOW, 's:' .. id))
  if state then
    take_away(id, state)
    finish(id, '-', 0)
  end
end

if held then
  take_away(change.ticket, held)
  finish(change.ticket, change.fence, made)
end
for _, id in ipairs(change.drop) do withdraw(id) end
if change.drop_all or change.clear_all then
  for _, name in ipairs(redis.call('HKEYS', WORKFLOW)) do
    local kind, rest = string.sub(name, 1, 2), string.sub(name, 3)
    if change.drop_all and kind == 't:' then withdraw(rest) end
    if change.clear_all and kind == 'd:' then removed[#removed + 1] = name end
  end
end
if change.clear_all then redis.call('ZREM', DUE, change.workflow) end
for _, name in ipairs(change.clear) do removed[#removed + 1] = 'd:' .. name end
if #removed > 0 then redis.call('HDEL', WORKFLOW, unpack(removed)) end

-- Claimed tickets are left alone: work in progress may finish.
local function begin_hold()
  for _, name in ipairs(redis.call('HKEYS', WORKFLOW)) do
    local kind, rest = string.sub(name, 1, 2), string.sub(name, 3)
    local state = kind == 't:' and read_state(redis.call('HGET', WORKFLOW, 's:' .. rest))
    if state and state.kind ~= 'c' then hold_back(WORKFLOW, rest, state) end
  end
  redis.call('HSET', WORKFLOW, 'parked', '1')
end

local function let_go(id, clock)
  local found = redis.call('HMGET', WORKFLOW, 's:' .. id, 't:' .. id)
  local state = read_state(found[1])
  if not state or state.kind ~= 'd' or state.rest ~= FOR_EVER then return end
  redis.call('ZREM', DELAYED, id)
  local member = offer(cjson.decode(found[2]), clock)
  redis.call('HSET', WORKFLOW, 's:' .. id, state_text('p', state.fence, state.owner, state.limit, member))
end

local function end_hold()
  local names, clock = redis.call('HKEYS', WORKFLOW), (read_clock())
  table.sort(names)
  for _, name in ipairs(names) do
    if string.sub(name, 1, 2) == 'd:' then
      local due = tonumber(redis.call('HGET', WORKFLOW, name)) + change.stood
      redis.call('HSET', WORKFLOW, name, seconds(due))
      look_at(change.workflow, due)
    end
  end
  for _, name in ipairs(names) do
    if string.sub(name, 1, 2) == 't:' then let_go(string.sub(name, 3), clock) end
  end
  redis.call('HDEL', WORKFLOW, 'parked')
end

if change.hold == 'begin' then begin_hold() end
if change.hold == 'end' then end_hold() end
local parked = change.hold == 'begin' or (found[6] and change.hold ~= 'end')

local emptied = {}
local written = {'version', made, 'head', new_head, 'snapshot', snapshot}

local function write(name, value)
  written[#written + 1] = name
  written[#written + 1] = value
end

if done ~= (found[3] or '') then write('done', done) end
if version == 0 then write('began', string.format('%d', (read_clock()) * 1000)) end
if change.operation ~= '' then write('o:' .. change.operation, made) end
for name, value in pairs(change.fields) do
  if value ~= '' then write(name, value) else emptied[#emptied + 1] = name end
end
for name, due in pairs(change.set) do
  write('d:' .. name, seconds(due))
  if not parked then look_at(change.workflow, due) end
end

-- A more urgent ticket goes first, and so does an equally urgent one that was offered before this workflow began.
local function is_first_in_queue(ticket)
  local lane = ticket.queue .. '|' .. ticket.priority .. '|'
  for place = 13, #KEYS do
    local range = redis.call('ZRANGEBYLEX', KEYS[place], '[' .. ticket.queue .. '|', '[' .. lane .. '~', 'LIMIT', 0, 1)
    local is_as_urgent = range[1] and string.sub(range[1], 1, #lane) == lane
    local offered = is_as_urgent and string.match(range[1], '^%d+|(%d+)|', #lane + 1)
    if range[1] and not (offered and found[7] and tonumber(offered) > tonumber(found[7])) then return false end
  end
  return true
end

local claims
if #change.tickets > 0 then
  local clock = read_clock()
  for _, text in ipairs(change.tickets) do
    local ticket = cjson.decode(text)
    if redis.call('HEXISTS', WORKFLOW, 't:' .. ticket.id) == 0 then
      write('t:' .. ticket.id, text)
      if parked then
        write('s:' .. ticket.id, state_text('d', 0, '', '', FOR_EVER))
        redis.call('ZADD', DELAYED, FOR_EVER, ticket.id)
      elseif ticket.delay_seconds > 0 then
        local ready = seconds(clock + ticket.delay_seconds)
        write('s:' .. ticket.id, state_text('d', 0, '', '', ready))
        redis.call('ZADD', DELAYED, ready, ticket.id)
      elseif ticket.id == change.claim and (change.past_waiting or is_first_in_queue(ticket)) then
        claims = ticket
      else
        write('s:' .. ticket.id, state_text('p', 0, '', '', offer(ticket, clock)))
      end
    end
  end
end

redis.call('HSET', WORKFLOW, unpack(written))
if #emptied > 0 then redis.call('HDEL', WORKFLOW, unpack(emptied)) end
redis.call('RPUSH', HISTORY, entry)
announce(CHANGES, change.workflow, made)
-- After the HSET, because the claim sets the deadline of the ticket's limit, not the change.
local claimed = claims and given(take(change.workflow, claims.id, claims, change.owner, change.token, (read_clock()))) or {}
if version == 0 then redis.call('ZADD', WORKFLOWS, change.issue, change.workflow) end
if change.live == 'begin' then
  redis.call('HSET', LIVE, change.feature, string.sub(change.workflow, #change.feature + 2))
elseif change.live == 'end' then
  if living == change.workflow then redis.call('HDEL', LIVE, change.feature) end
  -- A later removal or change does not alter the time of its end.
  local _, wall = read_clock()
  redis.call('ZADD', ENDED, 'NX', wall, change.workflow)
end
return {'ok', made, new_head, '', '', {}, claimed}
