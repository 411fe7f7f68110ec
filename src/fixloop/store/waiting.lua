-- The live workflows of a shard whose clocks run without a worker: all their remaining tickets are notifications. Left
-- out are paused workflows, those that a work process has to continue, and damaged ones.
-- ARGV: the prefix of workflow keys; the steps that notify; the steps to ignore.
-- Returns the engine's clock and, for each workflow, its id, its earliest deadline (or ''), and whether something can
-- be sent at once (1 or 0).

local prefix, notifying, ignored = ARGV[1], cjson.decode(ARGV[2]), cjson.decode(ARGV[3])
local clock = read_clock()

-- Its notification tickets, and whether it has others.
local function notification_state(hash, name, value)
  local is_ticket, ticket = pcall(cjson.decode, value)
  local step = is_ticket and type(ticket) == 'table' and ticket.step
  if not notifying[step] then return nil, not ignored[step] end
  return read_state(hash['s:' .. string.sub(name, 3)]), false
end

local function waiting_state(hash)
  local due, notifies, ready = nil, false, false
  if not hash.version or hash.parked then return nil end
  for name, value in pairs(hash) do
    local kind = string.sub(name, 1, 2)
    if kind == 'd:' and tonumber(value) then due = math.min(due or math.huge, tonumber(value)) end
    if kind == 't:' then
      local state, is_work = notification_state(hash, name, value)
      if is_work then return nil end
      notifies, ready = notifies or state ~= nil, ready or (state ~= nil and state.kind == 'p')
    end
  end
  return (due or notifies) and {due and seconds(due) or '', ready and 1 or 0}
end

local found = {}
local live = redis.call('HGETALL', LIVE)
for i = 1, #live, 2 do
  local workflow = live[i] .. '-' .. live[i + 1]
  local waits = waiting_state(as_table(redis.pcall('HGETALL', prefix .. workflow)))
  if waits then found[#found + 1] = {workflow, waits[1], waits[2]} end
end
return {seconds(clock), found}
